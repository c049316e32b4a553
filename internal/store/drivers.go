package store

import (
	// The two databases: pgx is the maintained driver of PostgreSQL; modernc.org/sqlite
	// needs no cgo, so that the binary stays static.
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"
)
