// Package script reads a batch or launch script that a person wrote: its #SBATCH
// directives as sbatch reads them, its commands in the order in which they run, the
// expansion of each word as far as the file shows it, and the training programs that
// the commands start. The package runs nothing and opens no file. A value that the
// file does not show stays unknown, together with the shell that would expand it.
//
// Read keeps a value unknown if the environment or a branch decides it. Settle chooses
// one such value, for callers that plan a job.
package script
