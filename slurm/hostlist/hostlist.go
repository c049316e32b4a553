// Package hostlist reads and writes Slurm's compressed lists of nodes, such as
// "gpu[01-03,7],login1". It handles names only and never contacts a node.
package hostlist

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// maxNodes bounds an expansion, so that an untrusted "n[0-999999999]" gives an
// error instead of exhausting memory.
const maxNodes = 10_000

// Expand returns the node names in list, in the order of list. An empty list and
// Slurm's words for no nodes, "(null)", "None assigned" and "N/A", give none.
func Expand(list string) ([]string, error) {
	switch list = strings.TrimSpace(list); list {
	case "", "(null)", "None assigned", "N/A":
		return nil, nil
	}
	var nodes []string
	for start := 0; start <= len(list); {
		end, err := wordEnd(list, start)
		if err != nil {
			return nil, err
		}
		word := strings.TrimSpace(list[start:end])
		if word == "" {
			return nil, lang.Text{EN: "node list %q: empty name at column %d", ZH: "节点列表 %q：第 %d 列处名称为空"}.Err(list, start+1)
		}
		names, err := expandWord(word, maxNodes-len(nodes))
		if err != nil {
			return nil, lang.Text{EN: "node list %q: %s", ZH: "节点列表 %q：%s"}.Err(list, err)
		}
		nodes = append(nodes, names...)
		start = end + 1
	}
	return nodes, nil
}

// wordEnd returns the index at which the word starting at start ends: the next
// comma outside brackets, or the end of the list.
func wordEnd(list string, start int) (int, error) {
	open := -1
	for i := start; i < len(list); i++ {
		switch c := list[i]; {
		case c == '[' && open >= 0:
			return 0, lang.Text{EN: "node list %q: '[' inside brackets at column %d", ZH: "节点列表 %q：第 %d 列的 '[' 位于括号之内"}.Err(list, i+1)
		case c == '[':
			open = i
		case c == ']' && open < 0:
			return 0, lang.Text{EN: "node list %q: ']' without '[' at column %d", ZH: "节点列表 %q：第 %d 列的 ']' 缺少对应的 '['"}.Err(list, i+1)
		case c == ']':
			open = -1
		case c == ',' && open < 0:
			return i, nil
		}
	}
	if open >= 0 {
		return 0, lang.Text{EN: "node list %q: missing ']' for the '[' at column %d", ZH: "节点列表 %q：第 %d 列的 '[' 缺少对应的 ']'"}.Err(list, open+1)
	}
	return len(list), nil
}

// expandWord expands one word, which may contain any number of bracketed ranges.
// It returns an error if the word expands to more than limit names.
func expandWord(word string, limit int) ([]string, error) {
	open := strings.IndexByte(word, '[')
	if open < 0 {
		if limit < 1 {
			return nil, lang.Text{EN: "more than %d nodes", ZH: "超过 %d 个节点"}.Err(maxNodes)
		}
		return []string{word}, nil
	}
	end := strings.IndexByte(word, ']')
	numbers, err := expandRanges(word[open+1:end], limit)
	if err != nil {
		return nil, err
	}
	tails := []string{""}
	if word[end+1:] != "" {
		if tails, err = expandWord(word[end+1:], limit); err != nil {
			return nil, err
		}
	}
	if len(numbers)*len(tails) > limit {
		return nil, lang.Text{EN: "more than %d nodes", ZH: "超过 %d 个节点"}.Err(maxNodes)
	}
	var names []string
	for _, n := range numbers {
		for _, tail := range tails {
			names = append(names, word[:open]+n+tail)
		}
	}
	return names, nil
}

// expandRanges expands the text between brackets, such as "01-03,7".
func expandRanges(ranges string, limit int) ([]string, error) {
	var numbers []string
	for part := range strings.SplitSeq(ranges, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		lo, err1 := strconv.ParseUint(first, 10, 32)
		hi, err2 := strconv.ParseUint(last, 10, 32)
		if err1 != nil || err2 != nil {
			return nil, lang.Text{EN: "%q is not a number or a range such as 01-16", ZH: "%q 不是数字，也不是 01-16 这样的范围"}.Err(part)
		}
		if hi < lo {
			return nil, lang.Text{EN: "range %q runs backwards", ZH: "范围 %q 是倒序的"}.Err(part)
		}
		if hi-lo >= uint64(max(limit-len(numbers), 0)) {
			return nil, lang.Text{EN: "more than %d nodes", ZH: "超过 %d 个节点"}.Err(maxNodes)
		}
		for n := lo; n <= hi; n++ {
			numbers = append(numbers, fmt.Sprintf("%0*d", len(first), n))
		}
	}
	return numbers, nil
}

// A numberedName is a node name split into its prefix and its trailing number.
// Compress joins names with the same prefix into ranges.
type numberedName struct {
	prefix string
	width  int // number of digits; zero padding is part of the name
	n      uint64
}

// Compress returns a short list that Expand turns back into nodes, sorted and
// without duplicates. Compress keeps zero padding: n1 and n01 are two nodes.
func Compress(nodes []string) string {
	var plain []string
	var split []numberedName
	for _, name := range nodes {
		digits := len(name)
		for digits > 0 && name[digits-1] >= '0' && name[digits-1] <= '9' {
			digits--
		}
		n, err := strconv.ParseUint(name[digits:], 10, 32)
		if err != nil {
			plain = append(plain, name)
			continue
		}
		split = append(split, numberedName{name[:digits], len(name) - digits, n})
	}
	slices.SortFunc(split, func(a, b numberedName) int {
		return cmp.Or(cmp.Compare(a.prefix, b.prefix), cmp.Compare(a.n, b.n), cmp.Compare(a.width, b.width))
	})
	split = slices.Compact(split)
	slices.Sort(plain)
	words := slices.Compact(plain)
	for len(split) > 0 {
		var word string
		word, split = compressPrefix(split)
		words = append(words, word)
	}
	return strings.Join(words, ",")
}

// compressPrefix joins all names that have the prefix of the first name into one
// word, and returns the remaining names. names must be sorted.
func compressPrefix(names []numberedName) (word string, rest []numberedName) {
	prefix := names[0].prefix
	var ranges []string
	for len(names) > 0 && names[0].prefix == prefix {
		run := 1
		for run < len(names) && names[run].prefix == prefix && follows(names[run-1], names[run], names[0].width) {
			run++
		}
		first, last := names[0], names[run-1]
		r := fmt.Sprintf("%0*d", first.width, first.n)
		if run > 1 {
			r += fmt.Sprintf("-%0*d", last.width, last.n)
		}
		ranges = append(ranges, r)
		names = names[run:]
	}
	if len(ranges) == 1 && !strings.Contains(ranges[0], "-") {
		return prefix + ranges[0], names
	}
	return prefix + "[" + strings.Join(ranges, ",") + "]", names
}

// follows reports whether b can directly follow a in a range whose first number
// has width digits: 10 follows 9 and 09, but 010 does not follow 09.
func follows(a, b numberedName, width int) bool {
	return b.n == a.n+1 && len(fmt.Sprintf("%0*d", width, b.n)) == b.width
}
