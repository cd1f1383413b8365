package proposal

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/gitfleet/gitfleet/gitsource/forge"
)

// A record is what gitfleet wrote last to a pull request or an issue, besides the body that has it. What is different
// now was edited by a person, and stays.
type record struct {
	title  string
	labels []string
}

var recorded = regexp.MustCompile(`(?m)^<!-- gitfleet wrote: ([0-9a-f]+)((?: [0-9a-f]+)*) -->\r?$`)

// shortHash stands for a title or a label in a record.
func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

// recordOf returns the record of a title and labels.
func recordOf(title string, labels []string) record {
	r := record{title: shortHash(title)}
	for _, l := range labels {
		r.labels = append(r.labels, shortHash(l))
	}
	return r
}

// recordIn returns the record in a body; known is false if it has none.
func recordIn(body string) (r record, known bool) {
	found := recorded.FindStringSubmatch(body)
	if found == nil {
		return record{}, false
	}
	return record{found[1], strings.Fields(found[2])}, true
}

// String is the record as a line of a body, where nobody sees it.
func (r record) String() string {
	return "<!-- gitfleet wrote: " + strings.Join(append([]string{r.title}, r.labels...), " ") + " -->\n"
}

// askedReviewers are the hashes of the users and teams whose reviews gitfleet has requested. Nobody is asked twice: people may
// remove a reviewer.
type askedReviewers []string

var askedLine = regexp.MustCompile(`(?m)^<!-- gitfleet asked for reviews:((?: [0-9a-f]+)*) -->\r?$`)

// askedIn returns the requested reviews in a body; known is false if it does not say.
func askedIn(body string) (asked askedReviewers, known bool) {
	found := askedLine.FindStringSubmatch(body)
	if found == nil {
		return nil, false
	}
	return strings.Fields(found[1]), true
}

// missing returns the names that were not asked yet, as long as there are not too many reviewers.
func (a askedReviewers) missing(names []string) []string {
	var out []string
	for _, name := range names {
		if len(a)+len(out) < maxReviewers && !slices.Contains(a, shortHash(name)) {
			out = append(out, name)
		}
	}
	return out
}

// with returns the reviewers with some more.
func (a askedReviewers) with(names []string) askedReviewers {
	out := slices.Clone(a)
	for _, name := range names {
		out = append(out, shortHash(name))
	}
	return out
}

// String is the list as a line of a body, where nobody sees it.
func (a askedReviewers) String() string {
	return strings.Join(append([]string{"<!-- gitfleet asked for reviews:"}, a...), " ") + " -->\n"
}

// editTo returns the edit that makes a pull request or an issue have a title, labels and a body, as far as people have
// not edited the title and the labels, and the result. It is not needed if nothing differs.
func editTo(pr thread, title string, labels []string, body string) (e forge.Edit, after thread, needed bool) {
	wrote, known := recordIn(pr.Body)
	if !known { // it was opened before there were records
		if wrote = recordOf(title, labels); isTitleOf(pr.Title, title) {
			wrote.title = shortHash(pr.Title)
		}
	}
	after = pr
	after.Labels = slices.Clone(pr.Labels)
	if shortHash(pr.Title) == wrote.title {
		wrote.title = shortHash(title)
		if pr.Title != title {
			e.Title, after.Title = title, title
		}
	}
	for _, l := range labels {
		if !slices.Contains(wrote.labels, shortHash(l)) && !slices.Contains(pr.Labels, l) {
			e.AddLabels, after.Labels = append(e.AddLabels, l), append(after.Labels, l)
		}
	}
	for _, l := range pr.Labels {
		if slices.Contains(wrote.labels, shortHash(l)) && !slices.Contains(labels, l) {
			e.RemoveLabels = append(e.RemoveLabels, l)
			after.Labels = slices.DeleteFunc(after.Labels, func(has string) bool { return has == l })
		}
	}
	slices.Sort(after.Labels)
	wrote.labels = recordOf("", labels).labels
	e.Body = body + wrote.String()
	after.Body = e.Body
	return e, after, e.Title != "" || len(e.AddLabels)+len(e.RemoveLabels) > 0 || !sameText(pr.Body, e.Body)
}

// isTitleOf reports whether gitfleet may have written a title for the change that has another one now: it differs only
// in the number of clusters.
func isTitleOf(title, now string) bool {
	what, _, found := strings.Cut(now, " on ")
	return found && regexp.MustCompile("^"+regexp.QuoteMeta(what)+fmt.Sprintf(` on (%[1]s of )?%[1]s clusters?$`, "[0-9]+")).MatchString(title)
}

// sameText reports whether two bodies are equal except for changes that a forge makes.
func sameText(a, b string) bool {
	return strings.TrimSpace(strings.ReplaceAll(a, "\r\n", "\n")) == strings.TrimSpace(b)
}

// maxReviewers is the maximum number of reviewers of a pull request.
const maxReviewers = 10
