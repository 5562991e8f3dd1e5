import java.io.StringReader;
import java.sql.*;
import java.util.*;
import org.postgresql.PGConnection;

public class Jdbc {
    interface Work { void run() throws Exception; }

    static Connection connection;

    static void report(String step, boolean ok, String detail) {
        String text = String.valueOf(detail).replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n").replace("\t", " ").replace("\r", "");
        System.out.println("{\"step\": \"" + step + "\", \"ok\": " + ok + ", \"detail\": \"" + text + "\"}");
    }

    static void step(String name, Work work) throws Exception {
        try {
            work.run();
            report(name, true, "");
        } catch (Exception error) {
            report(name, false, error.toString());
            if (!connection.getAutoCommit()) connection.rollback();
        }
    }

    static void same(Object found, Object expected) {
        if (!Objects.equals(found, expected)) throw new IllegalStateException(found + " instead of " + expected);
    }

    static List<String> column(ResultSet rows, String name) throws SQLException {
        List<String> values = new ArrayList<>();
        while (rows.next()) values.add(rows.getString(name));
        return values;
    }

    public static void main(String[] arguments) throws Exception {
        String url = "jdbc:postgresql://" + System.getenv("PGHOST") + ":" + System.getenv("PGPORT") + "/" + System.getenv("PGDATABASE");
        Properties properties = new Properties();
        properties.setProperty("user", System.getenv("PGUSER"));
        properties.setProperty("loginTimeout", "20");
        properties.setProperty("socketTimeout", "30");
        connection = DriverManager.getConnection(url, properties);
        DatabaseMetaData data = connection.getMetaData();
        report("connect", true, data.getDriverVersion());

        step("list", () -> {
            List<String> names = column(data.getTables(null, "public", "%", new String[] {"TABLE", "VIEW", "MATERIALIZED VIEW"}), "TABLE_NAME");
            same(new TreeSet<>(names), new TreeSet<>(List.of("named", "place", "sample", "total")));
            column(data.getSchemas(), "TABLE_SCHEM");
            column(data.getCatalogs(), "TABLE_CAT");
            column(data.getTableTypes(), "TABLE_TYPE");
        });
        step("reflect", () -> {
            same(column(data.getColumns(null, "public", "sample", "%"), "COLUMN_NAME").size(), 14);
            same(column(data.getPrimaryKeys(null, "public", "sample"), "COLUMN_NAME"), List.of("id"));
            same(column(data.getIndexInfo(null, "public", "sample", false, false), "INDEX_NAME"), List.of("sample_pkey", "sample_day"));
            column(data.getImportedKeys(null, "public", "sample"), "FKCOLUMN_NAME");
            column(data.getExportedKeys(null, "public", "sample"), "FKCOLUMN_NAME");
            column(data.getTypeInfo(), "TYPE_NAME");
            column(data.getProcedures(null, "public", "%"), "PROCEDURE_NAME");
            column(data.getFunctions(null, "public", "%"), "FUNCTION_NAME");
        });
        step("read", () -> {
            // More than five executions: the driver then prepares on the server and reads binary.
            for (int n = 0; n < 8; n++) {
                try (PreparedStatement statement = connection.prepareStatement("SELECT * FROM sample WHERE id = ?")) {
                    statement.setLong(1, 1);
                    ResultSet row = statement.executeQuery();
                    row.next();
                    same(row.getBoolean("flag"), true);
                    same(row.getInt("whole"), 3);
                    same(row.getDouble("double"), 2.5);
                    same(row.getBigDecimal("amount").toString(), "12.34");
                    same(row.getString("name"), "Grüße");
                    same(Arrays.toString(row.getBytes("bytes")), "[0, -1]");
                    same(row.getObject("day", java.time.LocalDate.class).toString(), "2026-11-28");
                    same(row.getObject("moment", java.time.LocalDateTime.class).toString(), "2026-11-28T12:34:56.789");
                    same(row.getObject("instant", java.time.OffsetDateTime.class).toInstant().toString(), "2026-11-28T12:34:56.789Z");
                    same(Arrays.toString((Object[]) row.getArray("list").getArray()), "[1, 2, 3]");
                }
            }
        });
        step("write", () -> {
            try (PreparedStatement statement = connection.prepareStatement("INSERT INTO sample (id, flag, double, name, bytes, day, moment) VALUES (?, ?, ?, ?, ?, ?, ?)")) {
                statement.setLong(1, 10);
                statement.setBoolean(2, true);
                statement.setDouble(3, 2.5);
                statement.setString(4, "written");
                statement.setBytes(5, new byte[] {1, 2});
                statement.setDate(6, java.sql.Date.valueOf("2026-11-28"));
                statement.setTimestamp(7, Timestamp.valueOf("2026-11-28 12:34:56"));
                same(statement.executeUpdate(), 1);
            }
            connection.setAutoCommit(false);
            try (Statement statement = connection.createStatement()) {
                statement.executeUpdate("INSERT INTO place VALUES (1, 'gone')");
            }
            connection.rollback();
            Savepoint savepoint = connection.setSavepoint();
            try (PreparedStatement statement = connection.prepareStatement("INSERT INTO place VALUES (?, ?)")) {
                for (int n = 0; n < 100; n++) {
                    statement.setLong(1, n);
                    statement.setString(2, "batch");
                    statement.addBatch();
                }
                same(statement.executeBatch().length, 100);
                connection.rollback(savepoint);
                statement.setLong(1, 1);
                statement.setString(2, "kept");
                statement.executeUpdate();
            }
            connection.commit();
            try (Statement statement = connection.createStatement()) {
                same(column(statement.executeQuery("SELECT name FROM place"), "name"), List.of("kept"));
            }
            connection.commit();
            connection.setAutoCommit(true);
            connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
            same(connection.getTransactionIsolation(), Connection.TRANSACTION_SERIALIZABLE);
        });
        step("copy", () -> {
            var manager = connection.unwrap(PGConnection.class).getCopyAPI();
            StringBuilder lines = new StringBuilder();
            for (int n = 1000; n < 2000; n++) lines.append(n).append("\tcopied\n");
            same(manager.copyIn("COPY place FROM STDIN", new StringReader(lines.toString())), 1000L);
            var out = new java.io.StringWriter();
            manager.copyOut("COPY (SELECT id FROM place WHERE id < 1002 ORDER BY id) TO STDOUT", out);
            same(out.toString(), "1\n1000\n1001\n");
        });
        step("stream", () -> {
            connection.setAutoCommit(false);
            try (Statement statement = connection.createStatement()) {
                statement.setFetchSize(100);
                same(column(statement.executeQuery("SELECT id FROM place"), "id").size(), 1001);
            }
            connection.commit();
            connection.setAutoCommit(true);
        });
        step("error", () -> {
            String[][] refused = {{"SELECT nothing", "42703"}, {"SELECT 1 / 0", "22012"}, {"INSERT INTO sample (id, name) VALUES (1, 'a')", "23505"}};
            for (String[] pair : refused) {
                try (Statement statement = connection.createStatement()) {
                    statement.execute(pair[0]);
                    throw new IllegalStateException(pair[0] + " works");
                } catch (SQLException error) {
                    same(error.getSQLState(), pair[1]);
                }
            }
        });
        connection.close();
    }
}
