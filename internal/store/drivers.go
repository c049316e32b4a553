package store

import (
	// modernc.org/sqlite needs no cgo, so that the binary stays static. The driver of
	// PostgreSQL, pgx, is for the program to import: most tests of what is above the
	// store never meet that server, and link a tenth faster without it.
	_ "modernc.org/sqlite"
)
