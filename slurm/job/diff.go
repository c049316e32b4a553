package job

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"strings"
)

// A Change is one field that differs between two specifications. Old or New is empty
// if that specification does not set the field.
type Change struct {
	Field string `json:"field"` // a field, args.--lr, or env.NAME
	Old   string `json:"old"`
	New   string `json:"new"`
}

// Diff returns the fields that differ between two specifications, in the order of the
// specification. It compares arguments flag by flag and ignores their order.
func Diff(old, next Spec) []Change {
	var changes []Change
	diffStruct(&changes, reflect.ValueOf(old), reflect.ValueOf(next), "")
	return changes
}

func diffStruct(out *[]Change, a, b reflect.Value, prefix string) {
	for f := range a.Type().Fields() {
		name := prefix + jsonName(f)
		x, y := a.FieldByIndex(f.Index), b.FieldByIndex(f.Index)
		switch x.Kind() {
		case reflect.Struct:
			diffStruct(out, x, y, name+".")
		case reflect.Map:
			diffMaps(out, x.Interface().(map[string]string), y.Interface().(map[string]string), name)
		default:
			if name == "args" {
				diffMaps(out, flags(x.Interface().([]string)), flags(y.Interface().([]string)), name)
				continue
			}
			if was, is := show(x), show(y); was != is {
				*out = append(*out, Change{name, was, is})
			}
		}
	}
}

func diffMaps(out *[]Change, a, b map[string]string, name string) {
	all := map[string]string{}
	maps.Copy(all, a)
	maps.Copy(all, b)
	for _, k := range sorted(all) {
		was, had := a[k]
		is, has := b[k]
		if was != is || had != has {
			*out = append(*out, Change{name + "." + k, was, is})
		}
	}
}

// show returns a field's value as a person would write it.
func show(v reflect.Value) string {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return ""
		}
		return fmt.Sprint(v.Elem())
	case reflect.Slice:
		words := make([]string, v.Len())
		for i := range words {
			words[i] = quote(v.Index(i).String())
		}
		return strings.Join(words, " ")
	}
	return v.String()
}

// flags maps each flag in args to its values, quoted for a shell. Words before the
// first flag have the key "".
func flags(args []string) map[string]string {
	out := map[string]string{}
	flag := ""
	var words []string
	keep := func() {
		if flag == "" && len(words) == 0 {
			return
		}
		text := cmp.Or(strings.Join(words, " "), "given")
		if before, twice := out[flag]; twice {
			text = before + "; " + text
		}
		out[flag] = text
	}
	for _, a := range args {
		if strings.HasPrefix(a, "--") {
			keep()
			var value string
			var has bool
			flag, value, has = strings.Cut(a, "=")
			words = nil
			if has {
				words = []string{quote(value)}
			}
			continue
		}
		words = append(words, quote(a))
	}
	keep()
	return out
}

// maxDiff is the most lines of a script that DiffText compares.
const maxDiff = 4000

// DiffText compares two scripts line by line. Each line of the result starts with
// "-", "+" or a blank, and each change has a few unchanged lines around it. Equal
// scripts give "". The scripts' embedded specifications are left out: Diff compares
// specifications.
func DiffText(old, next string) string {
	old, next = withoutEmbedded(old), withoutEmbedded(next)
	if old == next {
		return ""
	}
	a, b := strings.Split(strings.TrimSuffix(old, "\n"), "\n"), strings.Split(strings.TrimSuffix(next, "\n"), "\n")
	if len(a) > maxDiff || len(b) > maxDiff {
		return "the texts differ and are too long to compare line by line\n"
	}
	return withContext(edits(a, b), 2)
}

// edits merges the lines of both texts by their longest common subsequence, and
// prefixes each line with "-", "+" or a blank.
func edits(a, b []string) []string {
	common := make([][]int32, len(a)+1)
	for i := range common {
		common[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	var out []string
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, " "+a[i])
			i++
			j++
		case i < len(a) && (j == len(b) || common[i+1][j] >= common[i][j+1]):
			out = append(out, "-"+a[i])
			i++
		default:
			out = append(out, "+"+b[j])
			j++
		}
	}
	return out
}

// withContext keeps the changed lines and n unchanged lines on each side of a change.
// "…" replaces the lines that it leaves out.
func withContext(lines []string, n int) string {
	var b strings.Builder
	last := -1
	for i := range lines {
		near := false
		for j := max(0, i-n); j <= min(len(lines)-1, i+n); j++ {
			near = near || lines[j][0] != ' '
		}
		if !near {
			continue
		}
		if i > last+1 {
			b.WriteString("…\n")
		}
		b.WriteString(lines[i] + "\n")
		last = i
	}
	if last < len(lines)-1 {
		b.WriteString("…\n")
	}
	return b.String()
}
