// Package pages generates the parts of the skills that state rules and facts: whole
// reference pages, and blocks between markers. It generates them from the rules core, the
// flag table and the cards, so that the skills agree with these.
package pages
