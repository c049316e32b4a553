package slurm

import (
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// A column is one field requested from a Slurm command, and the function that stores
// its value.
type column[T any] struct {
	code string
	set  func(to *T, value string)
}

// columnFormat returns a --format of all columns, with sep before, between and after them.
func columnFormat[T any](columns []column[T], sep string) string {
	codes := make([]string, len(columns))
	for i, c := range columns {
		codes[i] = c.code
	}
	return sep + strings.Join(codes, sep) + sep
}

// parseColumns reads the output of a command that ran with columnFormat(columns, sep).
func parseColumns[T any](columns []column[T], out, sep string) ([]T, error) {
	records, err := splitRecords(out, sep, len(columns))
	return rowsOf(columns, records), err
}

// rowsOf returns a row for each record of one value a column.
func rowsOf[T any](columns []column[T], records [][]string) []T {
	rows := make([]T, len(records))
	for i, values := range records {
		for k, c := range columns {
			c.set(&rows[i], values[k])
		}
	}
	return rows
}

// splitRecords splits records of n fields, each written as sep f1 sep … fn sep and a
// line break. Splitting at sep gives n+1 pieces a record; the first piece is the text
// between two records.
func splitRecords(out, sep string, n int) ([][]string, error) {
	if strings.TrimSpace(out) == "" {
		return nil, nil
	}
	pieces := strings.Split(out, sep)
	if len(pieces)%(n+1) != 1 {
		return nil, lang.Text{EN: "cut short: %d pieces are no multiple of %d", ZH: "不完整：%d 段不是 %d 的倍数"}.Err(len(pieces)-1, n+1)
	}
	records := make([][]string, 0, len(pieces)/(n+1))
	for at := 1; at+n <= len(pieces); at += n + 1 {
		// Joining copies the fields, so that a job that is kept does not keep the whole
		// answer of some megabytes in memory.
		records = append(records, strings.Split(strings.Join(pieces[at:at+n], sep), sep))
	}
	return records, nil
}
