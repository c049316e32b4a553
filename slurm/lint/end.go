package lint

var endRules []Rule
