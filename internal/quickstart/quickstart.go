// Package quickstart lets the program start without garbage collection. What packages
// create before main runs, such as tables and compiled schemas, stays in use:
// collecting meanwhile frees nothing and takes a seventh of the time to an agent's
// first answer.
//
// It imports next to nothing, so that it is initialised before the packages that create
// much.
package quickstart

import (
	"os"
	"runtime/debug"
	"time"
)

// percent is so high that the first collection happens at 16 MB, which no start
// reaches.
const percent = 400

func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// OverIn restores normal collection after d. A command that ends before then never
// collects.
func OverIn(d time.Duration) {
	if os.Getenv("GOGC") == "" {
		time.AfterFunc(d, func() { debug.SetGCPercent(100) })
	}
}
