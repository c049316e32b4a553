package lint

var directiveRules []Rule
