// Package pages writes the parts of the skills that state rules and facts, from
// the rules core, the flag table and the cards, so that the skills cannot drift
// from them: whole reference pages, and blocks between markers.
package pages
