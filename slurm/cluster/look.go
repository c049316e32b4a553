package cluster

import "context"

// Look runs a shell's text, with arguments, where Slurm's commands run, and
// returns what it printed: to read files that are not to be seen from here.
func (c *CLI) Look(ctx context.Context, text string, args ...string) (string, error) {
	r, err := c.run(ctx, command{argv: append([]string{"sh", "-c", text, "sh"}, args...), env: c.Environ()})
	if err != nil {
		return "", named("look", err)
	}
	if r.code != 0 {
		return "", refusal("look", r)
	}
	return r.stdout, nil
}
