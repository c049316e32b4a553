package knowledge

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/megatron-ops/megatron-ops/internal/lang"
	"github.com/megatron-ops/megatron-ops/internal/redact"
	"github.com/megatron-ops/megatron-ops/knowledge/cards"
	"github.com/megatron-ops/megatron-ops/knowledge/index"
)

// A site is the knowledge of one place: folders of Markdown, a section a card.
// It is read again when a file changes.
type site struct {
	folders []string
	now     func() time.Time

	mu      sync.Mutex
	looked  time.Time // when the folders were last looked at
	stamp   string    // what they looked like
	library *library
}

// lookEvery is how often a change of the folders is noticed.
const lookEvery = 5 * time.Second

// Limits of what is read, so that a wrong folder costs little.
const (
	maxPages   = 2000
	maxPage    = 256 << 10
	maxSection = 1200 // characters of a section that are shown
)

// current returns the site's library, read anew where a file changed; nil
// where there is none.
func (s *site) current() *library {
	if len(s.folders) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if !s.looked.IsZero() && now.Sub(s.looked) < lookEvery {
		return s.library
	}
	s.looked = now
	files, stamp := pagesOf(s.folders)
	if stamp == s.stamp {
		return s.library
	}
	s.stamp, s.library = stamp, nil
	var list []cards.Card
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil || len(text) > maxPage {
			continue // a page that cannot be read is no page
		}
		list = append(list, sections(f, redact.Clean(string(text)))...)
	}
	if len(list) > 0 {
		s.library = makeLibrary(list)
	}
	return s.library
}

// pagesOf lists the Markdown pages of folders, and a stamp that changes when
// one of them does.
func pagesOf(folders []string) (files []string, stamp string) {
	var b strings.Builder
	for _, dir := range folders {
		_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil || len(files) >= maxPages {
				return nil //nolint:nilerr // what cannot be listed is left out
			}
			if d.IsDir() || !strings.EqualFold(filepath.Ext(p), ".md") {
				return nil
			}
			if info, err := d.Info(); err == nil {
				files = append(files, p)
				b.WriteString(p + info.ModTime().String() + "\n")
			}
			return nil
		})
	}
	slices.Sort(files)
	return files, b.String()
}

// sections cuts a page at its headings.
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
			ID: file + "#" + title, Title: lang.Text{EN: title}, URL: file,
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

// How well a site's section must fit to be preferred to the general answer.
const (
	siteScore = 0.33
	siteCover = 0.40
	siteShare = 0.80 // of the general answer's score
)

// local answers from the site's pages where they fit nearly as well as the
// general ones: what a site says of itself goes first, and the answer says so.
func (a *Answerer) local(text string, l lang.Lang, general []index.Hit) (Answer, bool) {
	lib := a.site.current()
	if lib == nil {
		return Answer{}, false
	}
	hits := lib.index.Search(text, 1)
	if len(hits) == 0 || hits[0].Score < siteScore || hits[0].Cover < siteCover {
		return Answer{}, false
	}
	if len(general) > 0 && hits[0].Score < siteShare*general[0].Score {
		return Answer{}, false
	}
	c := lib.cards[hits[0].Doc]
	note := lang.Text{EN: "From your site's page ", ZH: "来自本站点的页面 "}.In(l) + filepath.Base(c.URL) + " › " + c.Title.In(l) +
		lang.Text{EN: " (site pages go before the general ones):\n", ZH: "(站点内容优先于通用内容):\n"}.In(l)
	return Answer{
		Answer:  note + c.Text.In(l),
		Sources: []Source{{Skill: "site", Section: c.Title.In(l), URL: c.URL}},
	}, true
}

// siteMay reports whether a site's pages may know what the general ones decline.
func siteMay(why reason) bool {
	switch why {
	case live, person, noSuch, unknown, predict:
		return true
	}
	return false
}
