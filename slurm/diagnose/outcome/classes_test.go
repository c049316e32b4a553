package outcome

import "testing"

func TestWorth(t *testing.T) {
	for retry, want := range map[Retry]bool{"": false, RetryNo: false, RetryYes: true, RetryOnce: true, RetryElsewhere: true} {
		if retry.Worth() != want {
			t.Errorf("%q: worth %v", retry, !want)
		}
	}
}

// Every class says in both languages who can act, and what to do if there is something to do.
func TestClasses(t *testing.T) {
	for _, c := range Classes() {
		if of := Of(c.ID); of.ID != c.ID || of.Name != c.Name {
			t.Errorf("%s: its id gives the class %q", c.ID, of.Name.EN)
		}
		for _, text := range append(c.Advice, c.Name, c.Who) {
			if text.EN == "" || text.ZH == "" {
				t.Errorf("%s: %q and %q", c.ID, text.EN, text.ZH)
			}
		}
		if nothing := c.ID == Running || c.ID == Success; nothing != (len(c.Advice) == 0) || nothing && c.Retry.Worth() {
			t.Errorf("%s: %d remedies, retry %q", c.ID, len(c.Advice), c.Retry)
		}
		if c.Retry == "" {
			t.Errorf("%s: does not say whether a retry is worth it", c.ID)
		}
	}
	if of := Of("a class of another release"); of.ID != UnknownExit {
		t.Errorf("an id that is not known gives %s", of.ID)
	}
}
