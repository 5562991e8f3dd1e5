package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func report(step string, err error) {
	line := map[string]any{"step": step, "ok": err == nil, "detail": ""}
	if err != nil {
		line["detail"] = err.Error()
	}
	text, _ := json.Marshal(line)
	fmt.Println(string(text))
}

func listed(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, "SELECT table_name FROM information_schema.tables WHERE table_schema = $1 AND table_name = ANY($2)", "public", []string{"sample", "place"})
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err == nil && len(names) != 2 {
		err = fmt.Errorf("tables: %v", names)
	}
	return err
}

func reflected(ctx context.Context, conn *pgx.Conn) error {
	description, err := conn.Prepare(ctx, "by_key", "SELECT * FROM sample WHERE id = $1")
	if err != nil {
		return err
	}
	if len(description.Fields) != 14 || description.ParamOIDs[0] != 20 || description.Fields[1].DataTypeOID != 16 {
		return fmt.Errorf("%v", description)
	}
	return nil
}

func read(ctx context.Context, conn *pgx.Conn) error {
	var (
		id              int64
		flag            bool
		small           int16
		whole           int32
		single          float32
		double          float64
		amount, name    string
		bytes           []byte
		day             time.Time
		moment, instant time.Time
		list            []int32
	)
	err := conn.QueryRow(ctx, "SELECT id, flag, small, whole, single, double, amount::VARCHAR, name, bytes, day, moment, instant, list FROM sample WHERE id = $1", 1).
		Scan(&id, &flag, &small, &whole, &single, &double, &amount, &name, &bytes, &day, &moment, &instant, &list)
	if err != nil {
		return err
	}
	found := fmt.Sprint(id, flag, small, whole, single, double, amount, name, bytes, day.Format("2006-01-02"), instant.UnixMilli(), list)
	if expected := "1 true 2 3 1.5 2.5 12.34 Grüße [0 255] 2026-11-28 1795869296789 [1 2 3]"; found != expected {
		// Sprint puts no space between two strings.
		if expected = "1 true 2 3 1.5 2.512.34Grüße[0 255]2026-11-281795869296789 [1 2 3]"; found != expected {
			return errors.New(found)
		}
	}
	rows, err := conn.Query(ctx, "SELECT * FROM sample ORDER BY id")
	if err != nil {
		return err
	}
	all, err := pgx.CollectRows(rows, pgx.RowToMap)
	if err == nil && len(all) != 2 {
		err = fmt.Errorf("%d rows", len(all))
	}
	return err
}

func written(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "INSERT INTO sample (id, flag, double, name, bytes, day, instant, list) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
		10, true, 2.5, "written", []byte{1, 2}, time.Unix(0, 0).UTC(), time.Unix(0, 0), []int32{4, 5})
	if err != nil {
		return err
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	if _, err = tx.Exec(ctx, "INSERT INTO place VALUES ($1, $2)", 1, "gone"); err != nil {
		return err
	}
	if err = tx.Rollback(ctx); err != nil {
		return err
	}
	batch := &pgx.Batch{}
	for n := range 10 {
		batch.Queue("INSERT INTO place VALUES ($1, $2)", n, "batch")
	}
	if err = conn.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	var count int64
	if err = conn.QueryRow(ctx, "SELECT COUNT(*) FROM place").Scan(&count); err == nil && count != 10 {
		err = fmt.Errorf("%d rows", count)
	}
	return err
}

func copied(ctx context.Context, conn *pgx.Conn) error {
	rows := make([][]any, 1000)
	for n := range rows {
		rows[n] = []any{int64(n + 100), "copied"}
	}
	count, err := conn.CopyFrom(ctx, pgx.Identifier{"place"}, []string{"id", "name"}, pgx.CopyFromRows(rows))
	if err == nil && count != 1000 {
		err = fmt.Errorf("%d rows", count)
	}
	return err
}

func streamed(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	rows, err := conn.Query(ctx, "SUBSCRIBE total", pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return err
	}
	if !rows.Next() {
		return fmt.Errorf("no change: %w", rows.Err())
	}
	return nil
}

func refused(ctx context.Context, conn *pgx.Conn) error {
	for statement, state := range map[string]string{"SELECT nothing": "42703", "SELECT 1 / 0": "22012", "INSERT INTO sample (id, name) VALUES (1, 'a')": "23505"} {
		_, err := conn.Exec(ctx, statement)
		var refusal *pgconn.PgError
		if !errors.As(err, &refusal) || refusal.Code != state {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, "")
	report("connect", err)
	if err != nil {
		os.Exit(1)
	}
	report("list", listed(ctx, conn))
	report("reflect", reflected(ctx, conn))
	report("read", read(ctx, conn))
	report("write", written(ctx, conn))
	report("copy", copied(ctx, conn))
	report("error", refused(ctx, conn))
	// The last one: the connection is closed in the middle of the subscription.
	report("stream", streamed(ctx, conn))
}
