// Asks a PostgreSQL server over Go's database/sql and prints what came, so that a test can look at it.
//
//	ask DRIVER URL < questions
//
// DRIVER is postgres (lib/pq) or pgx. A question is a line of JSON: {"sql": "...", "arguments": [...]}. An answer is one
// too: the columns with the type names that the driver reports, and the rows; or the error and its SQLSTATE. What is
// no answer of the server (a connection that cannot be made, a line that cannot be read) ends the program.
package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/lib/pq"
)

type question struct {
	SQL       string `json:"sql"`
	Arguments []any  `json:"arguments"`
}

type answer struct {
	Columns [][2]string `json:"columns,omitempty"`
	Rows    [][]any     `json:"rows,omitempty"`
	Error   string      `json:"error,omitempty"`
	State   string      `json:"state,omitempty"`
}

func main() {
	database, err := sql.Open(os.Args[1], os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	// One connection, because a pool would open another one after an error.
	connection, err := database.Conn(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			log.Fatal(err)
		}
		if err := out.Encode(ask(connection, asked)); err != nil {
			log.Fatal(err)
		}
	}
	if err := lines.Err(); err != nil {
		log.Fatal(err)
	}
}

func ask(connection *sql.Conn, asked question) answer {
	arguments := make([]any, len(asked.Arguments))
	for i, argument := range asked.Arguments {
		arguments[i] = bound(argument)
	}
	rows, err := connection.QueryContext(context.Background(), asked.SQL, arguments...)
	if err != nil {
		return failed(err)
	}
	defer rows.Close()
	var found answer
	types, err := rows.ColumnTypes()
	if err != nil {
		return failed(err)
	}
	for _, column := range types {
		found.Columns = append(found.Columns, [2]string{column.Name(), column.DatabaseTypeName()})
	}
	for rows.Next() {
		values, places := make([]any, len(types)), make([]any, len(types))
		for i := range values {
			places[i] = &values[i]
		}
		if err := rows.Scan(places...); err != nil {
			return failed(err)
		}
		for i := range values {
			values[i] = shown(values[i])
		}
		found.Rows = append(found.Rows, values)
	}
	if err := rows.Err(); err != nil {
		return failed(err)
	}
	return found
}

// Lists as the driver takes them: texts, or whole numbers.
func bound(argument any) any {
	list, isList := argument.([]any)
	if !isList {
		return argument
	}
	texts, numbers := []string{}, []int64{}
	for _, element := range list {
		switch element := element.(type) {
		case string:
			texts = append(texts, element)
		case float64:
			numbers = append(numbers, int64(element))
		}
	}
	if len(numbers) > 0 {
		return wrapped(numbers)
	}
	return wrapped(texts)
}

// lib/pq wants arrays wrapped, pgx takes them as they are.
func wrapped(list any) any {
	if os.Args[1] == "postgres" {
		return pq.Array(list)
	}
	return list
}

// Times and bytes as JSON has none.
func shown(value any) any {
	switch value := value.(type) {
	case time.Time:
		return value.UTC().Format(time.RFC3339Nano)
	case []byte:
		return string(value)
	default:
		return value
	}
}

func failed(err error) answer {
	var ofPq *pq.Error
	if errors.As(err, &ofPq) {
		return answer{Error: ofPq.Message, State: string(ofPq.Code)}
	}
	var ofPgx *pgconn.PgError
	if errors.As(err, &ofPgx) {
		return answer{Error: ofPgx.Message, State: ofPgx.Code}
	}
	return answer{Error: err.Error()}
}
