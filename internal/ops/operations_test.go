package ops

// operations are all of them, for the tests of this package.
func operations() []Op {
	var list []Op
	list = []Op{
		Constants(), Plan(), Render(), Submit(), Status(), List(), Cancel(), Logs(), Diagnose(), Metrics(), Ask(func() []Op { return list }),
		Search(), Knowledge(), Card(), Wait(), Lint(), Recommend(), Memory(), Import(), Diff(), Compare(), Image(), Rules(), Hold(), Release(), Requeue(),
		Update(), Nodes(), NodeCheck(), Avoid(), RunCommand(), Explain(), AuditTrail(), Hostlist(), Queue(), Priority(), Partitions(),
		Accounts(), History(), KillSwitch(), Cleanup(), Resume(), Smoke(),
	}
	return list
}

// lookup returns the operation of that name.
func lookup(name string) (Op, bool) {
	for _, o := range operations() {
		if o.Name == name {
			return o, true
		}
	}
	return Op{}, false
}
