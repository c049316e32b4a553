package slurm

// A Launch is a script that starts steps in a job that runs already, from the
// machine on which Slurm's commands are typed. It goes on by itself: nobody
// waits for it.
type Launch struct {
	Job JobID
	// Step is the name that the script gives to its step, which no other step of
	// the job has.
	Step string
	// Script is a bash script, Args are its arguments.
	Script string
	Args   []string
	// Dir is where it starts; absolute. Base, relative to it, is the path of its
	// files without what follows the dot: the script .sh, and its words .out and .err.
	Dir, Base string
}
