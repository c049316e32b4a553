package ops

import "fmt"

// Plural is "1 node", "2 nodes".
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Duration is seconds as Slurm prints them: 1-02:03:04, 02:03:04, 03:04.
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
