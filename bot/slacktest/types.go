package slacktest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A Drawn is the JSON of a message's blocks or of a view.
type Drawn struct {
	Name string
	On   Surface
	JSON []byte
}

// chartType declares a block that Slack's types do not have yet, after its documentation
// (docs.slack.dev/reference/block-kit/blocks/data-visualization-block).
const chartType = `interface Series { name: string; data: { label: string; value: number }[] }
interface Axis { categories: string[]; x_label?: string; y_label?: string }
interface Chart { type: "data_visualization"; title: string; block_id?: string; chart: { type: "line"; series: Series[]; axis_config: Axis } }
type Block = KnownBlock | Chart;
`

// CheckTypes checks what was drawn against Slack's own types (@slack/types) by the TypeScript
// compiler. modules is a node_modules folder with both. Without it the test is skipped, except
// in CI, where it fails.
func CheckTypes(t testing.TB, modules string, drawn []Drawn) {
	t.Helper()
	modules, err := filepath.Abs(modules)
	if err != nil {
		t.Fatal(err)
	}
	tsc := filepath.Join(modules, ".bin", "tsc")
	if _, err := os.Stat(tsc); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is missing: run .ci/setup", tsc)
		}
		t.Skip("needs @slack/types and tsc: run .ci/setup")
	}
	dir := t.TempDir()
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	var ts strings.Builder
	ts.WriteString("import type { KnownBlock, ModalView, HomeView } from \"@slack/types\";\n" + chartType)
	for i, d := range drawn {
		typ := map[Surface]string{InMessage: "Block[]", InModal: "ModalView", InHome: "HomeView"}[d.On]
		fmt.Fprintf(&ts, "// %s\nexport const drawn%d: %s = %s;\n", strings.ReplaceAll(d.Name, "\n", " "), i, typ, d.JSON)
	}
	file := filepath.Join(dir, "drawn.ts")
	if err := os.WriteFile(file, []byte(ts.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tsc, "--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--moduleResolution", "nodenext", file).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
