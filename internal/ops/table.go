package ops

// Table is every operation, in the order in which help shows them.
func Table() []Op { return nil }
