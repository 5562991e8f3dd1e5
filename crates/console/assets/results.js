// The columns of a result, for a table.

import { isNumeric } from "./chart.js";
import { isNothing, plain } from "./text.js";

/** Columns of a table for columns with a `name` and a `type`. */
export function columnsOf(columns) {
  return columns.map((column, at) => {
    const isNumber = isNumeric(column);
    const order = (value) => (isNumber && !isNothing(value) ? Number(value) : typeof value === "object" && value !== null ? plain(value) : value);
    return {
      id: column.name || String(at),
      label: column.name,
      isNumber,
      width: Math.max(column.name.length + 4, isNumber ? 12 : 20),
      text: (row) => plain(row[column.name]),
      value: (row) => order(row[column.name]),
      tone: (row) => (isNothing(row[column.name]) ? "null" : ""),
    };
  });
}
