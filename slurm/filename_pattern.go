package slurm

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// noElement is the number that Slurm writes for %a outside an array. From 23.11 to
// 24.11 Slurm also writes it in already expanded names for all elements that have no
// job number of their own yet.
const noElement = "4294967294"

// ExpandPattern returns the path of j's output file. It replaces %x %j %J %A %a %u %N
// %n %t %s %b %% in sbatch's filename pattern as Slurm does (sbatch(1), "filename
// pattern"); a number between % and the letter pads with zeros. A relative path is
// taken from the job's directory. Letters that differ between tasks get the values of
// the batch step. A letter without a known value, such as the job number of a waiting
// array element or the element of a whole array, stays in the path. A component of a
// heterogeneous job writes to the first component's file, because the batch script runs
// there.
func ExpandPattern(pattern string, j Job) string {
	if pattern == "" {
		return ""
	}
	_, element, isArray := strings.Cut(string(j.ID), "_")
	whole, _, isComponent := strings.Cut(string(j.ID), "+")
	if isArray {
		pattern = strings.ReplaceAll(pattern, noElement, element)
	} else {
		element = noElement
	}
	first := ""
	if len(j.Nodes) > 0 {
		first = j.Nodes[0]
	}
	name := ExpandLetters(pattern, func(letter byte) (string, bool) {
		switch letter {
		case 'x':
			return j.Name, true
		case 'j', 'J':
			switch {
			case isComponent:
				return whole, true
			case isArray && j.State == Pending && (j.RawID == "" || j.RawID == j.ID.Array()):
				return "", false
			case j.RawID != "":
				return string(j.RawID), true
			}
			return string(j.ID), true
		case 'A':
			return string(j.ID.Array()), true
		case 'a':
			return element, len(j.Tasks) == 0
		case 'u':
			return j.User, true
		case 'N':
			return first, first != ""
		case 'n', 't':
			return "0", true
		case 's':
			return "batch", true
		}
		return "", false
	})
	if !filepath.IsAbs(name) && j.WorkDir != "" {
		name = filepath.Join(j.WorkDir, name)
	}
	return name
}

// ExpandLetters replaces each %letter of a filename pattern by the result of value, and
// keeps the letters for which value returns false. As in Slurm, a backslash anywhere in
// the pattern turns all replacement off.
func ExpandLetters(pattern string, value func(letter byte) (string, bool)) string {
	if strings.Contains(pattern, `\`) {
		return strings.ReplaceAll(pattern, `\`, "")
	}
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '%' {
			b.WriteByte(pattern[i])
			continue
		}
		end := i + 1
		for end < len(pattern) && pattern[end] >= '0' && pattern[end] <= '9' {
			end++
		}
		if end == len(pattern) {
			b.WriteString(pattern[i:])
			break
		}
		if pattern[end] == '%' {
			b.WriteByte('%')
			i = end
			continue
		}
		v, ok := value(pattern[end])
		if !ok {
			v = pattern[i : end+1]
		} else if width, err := strconv.Atoi(pattern[i+1 : end]); err == nil {
			if n, err := strconv.ParseUint(v, 10, 64); err == nil {
				v = fmt.Sprintf("%0*d", min(width, 10), n)
			}
		}
		b.WriteString(v)
		i = end
	}
	return b.String()
}
