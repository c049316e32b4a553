package lint

var rendezvousRules []Rule
