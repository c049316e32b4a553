package ops

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/megatron-ops/megatron-ops/internal/lang"
)

// counted maps a thing's name to its text for exactly one and its text for any other
// number.
var counted = map[string][2]lang.Text{
	"node":    {{EN: "%d node", ZH: "%d 个节点"}, {EN: "%d nodes", ZH: "%d 个节点"}},
	"GPU":     {{EN: "%d GPU", ZH: "%d 张 GPU"}, {EN: "%d GPUs", ZH: "%d 张 GPU"}},
	"rank":    {{EN: "%d rank", ZH: "%d 个 rank"}, {EN: "%d ranks", ZH: "%d 个 rank"}},
	"job":     {{EN: "%d job", ZH: "%d 个作业"}, {EN: "%d jobs", ZH: "%d 个作业"}},
	"log":     {{EN: "%d log", ZH: "%d 个日志"}, {EN: "%d logs", ZH: "%d 个日志"}},
	"line":    {{EN: "%d line", ZH: "%d 行"}, {EN: "%d lines", ZH: "%d 行"}},
	"file":    {{EN: "%d file", ZH: "%d 个文件"}, {EN: "%d files", ZH: "%d 个文件"}},
	"path":    {{EN: "%d path", ZH: "%d 个路径"}, {EN: "%d paths", ZH: "%d 个路径"}},
	"process": {{EN: "%d process", ZH: "%d 个进程"}, {EN: "%d processes", ZH: "%d 个进程"}},
	"failure": {{EN: "%d failure", ZH: "%d 次故障"}, {EN: "%d failures", ZH: "%d 次故障"}},
	"finding": {{EN: "%d finding", ZH: "%d 处问题"}, {EN: "%d findings", ZH: "%d 处问题"}},
	"warning": {{EN: "%d warning", ZH: "%d 个警告"}, {EN: "%d warnings", ZH: "%d 个警告"}},
}

// Counted returns "1 node" or "2 nodes". what must be a key of counted.
func Counted(n int, what string) lang.Text {
	forms := counted[what]
	if n == 1 {
		return forms[0].With(n)
	}
	return forms[1].With(n)
}

// CountedHours returns "1 hour" or "2.5 hours", or with true "1 GPU hour".
func CountedHours(h float64, gpu bool) lang.Text {
	forms := [2]lang.Text{{EN: "%s hour", ZH: "%s 小时"}, {EN: "%s hours", ZH: "%s 小时"}}
	if gpu {
		forms = [2]lang.Text{{EN: "%s GPU hour", ZH: "%s GPU 小时"}, {EN: "%s GPU hours", ZH: "%s GPU 小时"}}
	}
	if n := Hours(h); n != "1" {
		return forms[1].With(n)
	}
	return forms[0].With("1")
}

// FirstFew lists the first few words, and says how many more there are.
func FirstFew(words []string, few int) lang.Text {
	first := words[:min(len(words), few)]
	all := lang.Text{EN: strings.Join(first, ", "), ZH: strings.Join(first, "、")}
	if more := len(words) - few; more > 0 {
		return lang.Text{EN: "%s, and %d more", ZH: "%s，另有 %d 个"}.With(all, more)
	}
	return all
}

// Duration formats seconds as Slurm does: 1-02:03:04, 02:03:04, 03:04.
func Duration(s int64) string {
	d, h, m, s := s/86400, s/3600%24, s/60%60, s%60
	switch {
	case d > 0:
		return fmt.Sprintf("%d-%02d:%02d:%02d", d, h, m, s)
	case h > 0:
		return fmt.Sprintf("%02d:%02d:%02d", h, m, s)
	}
	return fmt.Sprintf("%02d:%02d", m, s)
}

// Hours formats hours, or GPU hours, without an exponent and with at most two decimals:
// 0.25, 16, 12288, 5376000.
func Hours(h float64) string { return strconv.FormatFloat(math.Round(h*100)/100, 'f', -1, 64) }

// Bytes formats a size for people, in the binary units that disk quotas and du -h use.
func Bytes(n int64) string {
	const unit = 1024
	size, names := float64(n), []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	i := 0
	for size >= unit-0.05 && i < len(names)-1 { // 1023.96 would be printed as 1024.0
		size, i = size/unit, i+1
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", size, names[i])
}
