package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets the test binary stand in for the command, and for the programs as which
// the command acts in a job.
func TestMain(m *testing.M) {
	if code, ok := standIn(); ok {
		os.Exit(code)
	}
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "__") { // another word that is never typed
		main()
	}
	if err := os.Setenv(allowRoot, "1"); err != nil {
		panic(err)
	}
	testscript.Main(tests{m}, map[string]func(){
		"megatron-ops": main,
	})
}

// tests runs the tests of this package, more of them in parallel than Go does by default.
type tests struct{ *testing.M }

// Run runs them.
func (t tests) Run() int {
	flag.Parse()
	if err := flag.Set("test.parallel", "12"); err != nil { // they mostly wait for servers and jobs
		panic(err)
	}
	return t.M.Run()
}

// TestScripts runs every script in testdata/script, each in a folder and with a state
// of its own.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(env *testscript.Env) error {
			env.Setenv("MEGATRON_OPS_STATE_DIR", filepath.Join(env.WorkDir, ".state"))
			env.Setenv("MEGATRON_OPS_CLUSTER", localCluster)
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("USER", "tester")
			program, err := exec.LookPath("megatron-ops") // for scripts with a PATH of their own
			if err != nil {
				return err
			}
			env.Setenv("MEGATRON_OPS", program)
			return os.MkdirAll(filepath.Join(env.WorkDir, "tree", ".venv"), 0o755)
		},
	})
}
