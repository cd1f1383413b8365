package proposal

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/gitfleet/gitfleet/gitsource/forge"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A State says how far the decision about a held change is.
type State string

// The states of a held change.
const (
	// Waiting has no pull request or issue yet.
	Waiting State = "waiting"
	// Open has an open pull request or issue.
	Open State = "open"
	// Merged has a merged pull request whose commit is not in force on its clusters yet.
	Merged State = "merged"
	// Closed has a pull request that was closed without merging, or a closed issue: the change
	// is put back.
	Closed State = "closed"
	// OnHold has a closed pull request or issue with the label that keeps the object as it is.
	OnHold State = "on-hold"
	// Reported is only reported, as its drift mode asks.
	Reported State = "reported"
	// Inexpressible cannot be made by an edit of the files in Git, nor be offered as an issue:
	// it is put back.
	Inexpressible State = "inexpressible"
	// Unsettled is in the commit in force already, or too little is known of it yet.
	Unsettled State = "unsettled"
)

// HeldVersion names the schema of a HeldList in JSON. What has this version keeps its fields; new
// ones may come.
const HeldVersion = "gitfleet.dev/proposals/v1"

// A HeldList has all changes that are held, the oldest first.
type HeldList struct {
	APIVersion string `json:"apiVersion"`
	// At is when they were last looked at.
	At    time.Time    `json:"at"`
	Items []HeldChange `json:"items"`
}

// Find returns the change that a name, or its beginning, is of.
func (l *HeldList) Find(name string) (*HeldChange, error) {
	var names []string
	for _, c := range l.Items {
		names = append(names, c.Name)
	}
	i, err := findName(name, names)
	if err != nil {
		return nil, err
	}
	return &l.Items[i], nil
}

// findName returns which of some names begins as a text does.
func findName(text string, names []string) (int, error) {
	found := -1
	for i, name := range names {
		switch {
		case text == "" || !strings.HasPrefix(name, text):
		case found >= 0:
			return 0, refuse("%s is the beginning of more than one name; write more of it", text)
		default:
			found = i
		}
	}
	if found < 0 {
		return 0, &status.UnknownError{What: "proposal", Name: text, Exist: names}
	}
	return found, nil
}

// A HeldChange is one distinct change that is held: the same fields of one object have the same
// values on one or more clusters.
type HeldChange struct {
	// Name identifies the change as long as it is held, and is part of the name of its branch.
	Name   string                 `json:"name"`
	Object api.ResourceIdentifier `json:"object"`
	State  State                  `json:"state"`
	// URL is that of the pull request or issue; empty if there is none.
	URL string `json:"url,omitempty"`
	// Reason is why no edit of the files in Git makes the change; empty if Edits do, or if that is
	// not known.
	Reason string `json:"reason,omitempty"`
	// Message says what the change waits for.
	Message string `json:"message"`
	// Modes are the drift rules by which it is held.
	Modes      []string `json:"modes"`
	Placements []string `json:"placements"`
	// Clusters have the change; Holders counts the clusters that get the object.
	Clusters []string `json:"clusters"`
	Holders  int      `json:"holders"`
	// FirstSeen is when the object was first found to be changed on any cluster.
	FirstSeen time.Time        `json:"firstSeen"`
	Deleted   bool             `json:"deleted,omitempty"`
	Fields    []api.Difference `json:"fields,omitempty"`
	// By are those who changed it, by cluster.
	By []Writer `json:"by,omitempty"`
	// Source is the line of the object in Git; empty if that is not known.
	Source string `json:"source,omitempty"`
	// Override names the override that the edit is in. If it is empty, merging changes the object
	// on OtherClusters too.
	Override      string   `json:"override,omitempty"`
	OtherClusters []string `json:"otherClusters,omitempty"`
	// Edits are the differences that the pull request makes, by file.
	Edits []FileEdit `json:"edits,omitempty"`
}

// A Writer is who changed an object on a cluster.
type Writer struct {
	Cluster string `json:"cluster"`
	api.Actor
}

// A FileEdit is a unified diff of one file. It is empty if the file may have values of Secrets.
type FileEdit struct {
	Path string `json:"path"`
	Diff string `json:"diff,omitempty"`
}

// heldChanges are what a pass has found to be held. They are not changed afterwards.
type heldChanges struct {
	at     time.Time
	report *status.Report
	items  []heldItem
	// list describes them. It computes the edits once, when somebody asks.
	list func() *HeldList
}

func newHeldChanges(at time.Time, report *status.Report) *heldChanges {
	h := &heldChanges{at: at, report: report}
	h.list = sync.OnceValue(h.describe)
	return h
}

// A heldItem is one change with what was decided about it.
type heldItem struct {
	*offer
	state   State
	url     string
	message string
}

// Held returns the changes that are held; nil before the first report. Any goroutine may call it,
// and must not change what it returns.
func (p *Proposer) Held() *HeldList {
	if held := p.held.Load(); held != nil {
		return held.list()
	}
	return nil
}

// describe returns the changes, the oldest first.
func (h *heldChanges) describe() *HeldList {
	list := &HeldList{APIVersion: HeldVersion, At: h.at, Items: []HeldChange{}}
	holders := map[api.ID]int{}
	for _, it := range h.items {
		c := it.describe()
		if c.Holders == 0 && h.report != nil {
			n, counted := holders[it.id]
			if !counted {
				all, _ := h.report.HoldersOf(it.id)
				n, holders[it.id] = len(all), len(all)
			}
			c.Holders = max(n, len(c.Clusters))
		}
		list.Items = append(list.Items, c)
	}
	slices.SortStableFunc(list.Items, func(a, b HeldChange) int {
		return cmp.Or(a.FirstSeen.Compare(b.FirstSeen), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// heldState is the state of a change that is an offer.
func (c *change) heldState() State {
	switch {
	case c.state == forge.Open:
		return Open
	case c.state == forge.Merged:
		return Merged
	case c.state == forge.Closed && c.hold:
		return OnHold
	case c.state == forge.Closed:
		return Closed
	}
	return Waiting
}

func (it heldItem) describe() HeldChange {
	out := HeldChange{
		Name: it.hash, Object: it.drifts[0].ResourceIdentifier, State: it.state, URL: it.url, Message: it.message,
		Clusters: it.clusters(), Holders: it.holders, FirstSeen: it.first(), Deleted: it.deleted, Fields: it.paths,
		Override: it.override, OtherClusters: it.others, Source: it.line(),
	}
	if it.reason != nil {
		out.Reason = it.reason.Error()
	}
	for _, d := range it.drifts {
		out.Modes = append(out.Modes, d.Mode)
		out.Placements = append(out.Placements, d.Placement)
		for _, a := range d.By {
			out.By = append(out.By, Writer{d.Cluster, a})
		}
	}
	for _, list := range []*[]string{&out.Modes, &out.Placements} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	for _, f := range it.changes {
		out.Edits = append(out.Edits, f.describe())
	}
	return out
}

// secretKinds matches files that have Secrets, dataPatches those that patch the data of objects
// whose kind may stand in another file; configMaps have data, too.
var (
	secretKinds = regexp.MustCompile(`kind["']?\s*:\s*["']?Secret(List)?\b|secretGenerator|stringData`)
	dataPatches = regexp.MustCompile(`path["']?\s*:\s*["']?/data/`)
	configMaps  = regexp.MustCompile(`kind["']?\s*:\s*["']?ConfigMap\b`)
)

// mayHaveSecrets reports whether a file may have values of Secrets.
func mayHaveSecrets(text []byte) bool {
	return secretKinds.Match(text) || dataPatches.Match(text) && !configMaps.Match(text)
}

// describe returns the unified diff of a file.
func (f FileChange) describe() FileEdit {
	if mayHaveSecrets(f.Before) || mayHaveSecrets(f.After) {
		return FileEdit{Path: f.Path}
	}
	d := difflib.UnifiedDiff{FromFile: "a/" + f.Path, ToFile: "b/" + f.Path, Context: 3}
	if f.Before == nil {
		d.FromFile = "/dev/null"
	} else {
		d.A = lines(f.Before)
	}
	if f.After == nil {
		d.ToFile = "/dev/null"
	} else {
		d.B = lines(f.After)
	}
	text, err := difflib.GetUnifiedDiffString(d)
	if err != nil {
		return FileEdit{Path: f.Path} // it is written to memory, so there is none
	}
	return FileEdit{f.Path, text}
}

// lines are those of a text, each with its line break.
func lines(text []byte) []string {
	out := slices.Collect(strings.Lines(string(text)))
	if last := len(out) - 1; last >= 0 && !strings.HasSuffix(out[last], "\n") {
		out[last] += "\n\\ No newline at end of file\n"
	}
	return out
}
