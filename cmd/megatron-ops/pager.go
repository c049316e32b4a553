package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
)

// pager is the command that long text is shown with, as PAGER says it, and
// MEGATRON_OPS_PAGER for this program alone; empty: none.
func pager() string {
	for _, name := range []string{"MEGATRON_OPS_PAGER", "PAGER"} {
		if p, set := os.LookupEnv(name); set {
			if p = strings.TrimSpace(p); p == "cat" {
				return ""
			}
			return p
		}
	}
	return ""
}

// page shows text through the pager, where there is one and a terminal. A pager that
// does not start leaves the text to the terminal.
func (sh *shell) page(ctx context.Context, text string) error {
	if p := pager(); p != "" && isTerminal(sh.out) {
		c := exec.CommandContext(ctx, "sh", "-c", p)
		c.Stdin, c.Stdout, c.Stderr, c.Env = strings.NewReader(text), sh.out, sh.err, os.Environ()
		for name, value := range map[string]string{"LESS": "FRX", "LV": "-c"} { // end where all fits, and keep colours
			if os.Getenv(name) == "" {
				c.Env = append(c.Env, name+"="+value)
			}
		}
		if c.Run() == nil {
			return nil
		}
	}
	_, err := io.WriteString(sh.out, text)
	return err
}
