// Elements. Texts become text nodes: nothing here reads markup.

const SVG = "http://www.w3.org/2000/svg";

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** An element with attributes, listeners (`onclick`) and children: elements, or texts. */
export function el(name, attributes, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** The same for a part of a picture. */
export function svg(name, attributes, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

/** Gives an element this text, if it has another one. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Buttons of which one is pressed. Calls `choose` with its value. */
export function choice(label, options, chosen, choose) {
  const buttons = options.map(([value, text]) =>
    el("button", { type: "button", "aria-pressed": String(value === chosen), onclick: () => press(value) }, text),
  );
  const press = (value) => {
    options.forEach(([other], at) => buttons[at].setAttribute("aria-pressed", String(other === value)));
    choose(value);
  };
  return el("div", { class: "choice", role: "group", "aria-label": label }, ...buttons);
}

/** A problem, as a box. */
export function problemBox(error) {
  return el("p", { class: "problem", role: "alert" }, error.message);
}
