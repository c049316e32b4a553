// Package script reads somebody's batch or launch script: its #SBATCH
// directives as sbatch reads them, the commands in the order in which they
// run, what every word of them expands to as far as the file shows it, and the
// training programs that they start. Nothing is run and nothing is opened: a
// value that the file does not show stays unknown, with the place that would
// have expanded it.
//
// Read gives the whole reading, in which a value that the environment or a
// branch decides stays unknown; Settle one answer, for a planner.
package script
