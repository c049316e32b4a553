package lint

var environmentRules []Rule
