package lint

var containerRules []Rule
