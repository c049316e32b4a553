package slurm

// A Launch is a script that starts steps inside a running job. The script runs on the
// machine where Slurm's commands run, and nobody waits for its end.
type Launch struct {
	Job JobID
	// Step is the name that the script gives its step. No other step of the job has
	// that name.
	Step string
	// Script is a bash script; Args are its arguments.
	Script string
	Args   []string
	// Dir is the absolute directory in which the script starts. Base, relative to Dir,
	// is the common path of the launch's files without extension: .sh is the script,
	// .out and .err are its output.
	Dir, Base string
}
