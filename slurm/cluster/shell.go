package cluster

import "context"

// RunShell runs a shell script with arguments on the machine where Slurm's commands run,
// and returns its output. It serves to read files that this machine cannot see.
func (c *CLI) RunShell(ctx context.Context, script string, args ...string) (string, error) {
	return c.output(ctx, "read files", command{argv: append([]string{"sh", "-c", script, "sh"}, args...), env: c.Environ()})
}
