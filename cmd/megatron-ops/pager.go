package main

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
)

// pager returns the command that shows long text: MEGATRON_OPS_PAGER, else PAGER. It is
// empty for no pager.
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

// page shows text through the pager if there is one and standard output is a terminal.
// If the pager fails, page prints the text.
func (sh *shell) page(ctx context.Context, text string) error {
	if p := pager(); p != "" && isTerminal(sh.out) {
		c := exec.CommandContext(ctx, "sh", "-c", p)
		c.Stdin, c.Stdout, c.Stderr, c.Env = strings.NewReader(text), file(sh.out), sh.err, os.Environ()
		for name, value := range map[string]string{"LESS": "FRX", "LV": "-c"} { // quit if the text fits on one screen, and keep colours
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
