package knowledge

import (
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/internal/within"
	"github.com/megatron-ops/megatron-ops/knowledge/cards"
	"github.com/megatron-ops/megatron-ops/knowledge/library"
)

// A site is the knowledge of one site: folders of Markdown pages, of which each
// section is a card. The pages are read again when a file changes.
type site struct {
	folders []string
	now     func() time.Time

	mu       sync.Mutex
	lastScan time.Time
	stamp    string // paths and times of the pages at the last scan
	lib      *library.Library
}

// rescanInterval is the least time between two scans of the folders.
const rescanInterval = 5 * time.Second

// Limits of reading, so that a wrong folder costs little.
const (
	maxPages   = 2000
	maxPage    = 256 << 10 // bytes
	maxSection = 1200      // characters of a section that are shown
)

// current returns the site's library, rebuilt if a file has changed; nil where the site
// has no pages.
func (s *site) current() *library.Library {
	if len(s.folders) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if !s.lastScan.IsZero() && now.Sub(s.lastScan) < rescanInterval {
		return s.lib
	}
	s.lastScan = now
	pages, stamp := pagesOf(s.folders)
	if stamp == s.stamp {
		return s.lib
	}
	s.stamp, s.lib = stamp, nil
	var list []cards.Card
	for _, p := range pages {
		text, err := p.read()
		if err != nil || len(text) > maxPage {
			continue // skip a page that is too large or cannot be read
		}
		list = append(list, sections(p.path, redact.Clean(string(text)))...)
	}
	if len(list) > 0 {
		s.lib = library.Make(list)
	}
	return s.lib
}

// A page is a Markdown file below one of the site's folders. Links that lead out of
// the folder and pipes are no pages, because people other than the service's owner may
// write to the folder.
type page struct{ folder, path string }

func (p page) read() ([]byte, error) {
	in, err := within.Open(p.folder)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	file, err := in.Open(p.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxPage+1))
}

// pagesOf lists the pages of folders, sorted by path, and a stamp that changes when a
// page changes.
func pagesOf(folders []string) (pages []page, stamp string) {
	var b strings.Builder
	for _, dir := range folders {
		_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil || len(pages) >= maxPages {
				return nil //nolint:nilerr // skip a folder that cannot be listed
			}
			if d.IsDir() || !strings.EqualFold(filepath.Ext(p), ".md") {
				return nil
			}
			if info, err := d.Info(); err == nil {
				pages = append(pages, page{dir, p})
				b.WriteString(p + info.ModTime().String() + "\n")
			}
			return nil
		})
	}
	slices.SortFunc(pages, func(a, b page) int { return strings.Compare(a.path, b.path) })
	return pages, b.String()
}

// sections splits a page at its headings and returns a card for each section.
func sections(file, text string) []cards.Card {
	var list []cards.Card
	page := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	title, body, fenced := page, []string{}, false
	flush := func() {
		whole := strings.TrimSpace(strings.Join(body, "\n"))
		body = body[:0]
		if whole == "" {
			return
		}
		if rs := []rune(whole); len(rs) > maxSection {
			whole = string(rs[:maxSection]) + " …"
		}
		list = append(list, cards.Card{
			ID: file + "#" + title, Skill: "site", Title: lang.Text{EN: title}, URL: file,
			Asks: []string{title, page + " " + title}, Text: lang.Text{EN: whole},
		})
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if head := strings.TrimLeft(line, "#"); !fenced && head != line && strings.HasPrefix(head, " ") {
			flush()
			title = strings.TrimSpace(head)
			continue
		}
		body = append(body, line)
	}
	flush()
	return list
}
