package index

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// An analysed text: its words, and the pieces of their letters.
type analysed struct {
	terms  []Term
	pieces []gram
}

func analyse(text string) analysed { return analysed{Terms(text), grams(text)} }

// material is what an index is made from: the texts of a Doc, analysed once.
type material struct {
	asks  []analysed
	title analysed
	body  []Term
}

// read analyses the Docs, on all processors: it is most of the work of New.
func read(docs []Doc) []material {
	all := make([]material, len(docs))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(docs)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(docs)); i = next.Add(1) - 1 {
				d, m := docs[i], &all[i]
				m.asks = make([]analysed, len(d.Asks))
				for j, a := range d.Asks {
					m.asks[j] = analyse(a)
				}
				m.title, m.body = analyse(d.Title), Terms(d.Body)
			}
		})
	}
	wg.Wait()
	return all
}
