package proposal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/difftext"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// HeldVersion identifies the JSON schema of a HeldList. Fields of a version are never removed;
// new ones may be added.
const HeldVersion = "gitfleet.dev/proposals/v1"

// A HeldList has all held changes, the oldest first.
type HeldList struct {
	APIVersion string `json:"apiVersion"`
	// At is the time at which the list was computed.
	At    time.Time    `json:"at"`
	Items []HeldChange `json:"items"`
}

// Find returns the change with a name, of which the beginning is enough.
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

// findName returns the index of the only name that begins with a text.
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
	// Name identifies the change while it is held, and is part of the name of its branch.
	Name   string                 `json:"name"`
	Object api.ResourceIdentifier `json:"object"`
	State  State                  `json:"state"`
	// URL is the URL of the pull request or issue; empty if there is none.
	URL string `json:"url,omitempty"`
	// Together are the names of the other changes in the same pull request.
	Together []string `json:"together,omitempty"`
	// Reason is the reason why no edit of the files in Git can express the change; empty if
	// Edits do, or if that is not known.
	Reason string `json:"reason,omitempty"`
	// Message says what the change waits for.
	Message string `json:"message"`
	// Rules are the drift rules by which it is held.
	Rules      []string `json:"modes"`
	Placements []string `json:"placements"`
	// Clusters are those that have the change. Holders is the number of clusters that get the
	// object.
	Clusters []string `json:"clusters"`
	Holders  int      `json:"holders"`
	// FirstSeen is when the change was first seen on any cluster.
	FirstSeen time.Time   `json:"firstSeen"`
	Deleted   bool        `json:"deleted,omitempty"`
	Fields    []HeldField `json:"fields,omitempty"`
	// By are those who made the change, by cluster.
	By []Writer `json:"by,omitempty"`
	// Source is the line of the first changed field in Git, or else of the object; empty if it is not known.
	Source string `json:"source,omitempty"`
	// Override names the override that the edit changes. If it is empty, merging also changes
	// the object on OtherClusters.
	Override      string   `json:"override,omitempty"`
	OtherClusters []string `json:"otherClusters,omitempty"`
	// Edits are the diffs of the pull request, by file.
	Edits []FileEdit `json:"edits,omitempty"`
}

// A HeldField is one field of a change.
type HeldField struct {
	api.Difference
	// Diff has the lines of the difference for people: the path with the names of items, and the values as YAML, where
	// "- " is in Git and "+ " on the clusters.
	Diff []string `json:"diff"`
}

// A Writer is someone who changed an object on a cluster.
type Writer struct {
	Cluster string `json:"cluster"`
	api.Actor
}

// A FileEdit is a unified diff of one file. It is empty if the file may contain values of
// Secrets.
type FileEdit struct {
	Path string `json:"path"`
	Diff string `json:"diff,omitempty"`
}

// heldChanges are the changes that a pass found to be held. They are immutable.
type heldChanges struct {
	at     time.Time
	report *status.Report
	items  []heldItem
	// list describes them. It computes the diffs only once, when it is first called.
	list func() *HeldList
}

func newHeldChanges(at time.Time, report *status.Report) *heldChanges {
	h := &heldChanges{at: at, report: report}
	h.list = sync.OnceValue(h.describe)
	return h
}

// A heldItem is one change with the decision about it.
type heldItem struct {
	*change
	state   State
	url     string
	message string
	// together are the other changes in the same pull request.
	together []string
	// whole is the number of changes that a request is about; zero if it is about this one only.
	whole int
}

// Held returns the held changes; nil before the first report. Any goroutine may call it, and
// must not modify the result.
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

func (it heldItem) describe() HeldChange {
	out := HeldChange{
		Name: it.hash, Object: it.drifts[0].ResourceIdentifier, State: it.state, URL: it.url, Together: it.together, Message: it.message,
		Clusters: it.clusters(), Holders: it.holders, FirstSeen: it.first(), Deleted: it.deleted,
		Override: it.override, OtherClusters: it.others, Source: it.source.String(),
	}
	for _, p := range it.paths {
		out.Fields = append(out.Fields, HeldField{p, difftext.Field(it.object, p)})
	}
	if it.reason != nil {
		out.Reason = it.reason.Error()
	}
	for _, d := range it.drifts {
		out.Rules = append(out.Rules, d.Rule)
		out.Placements = append(out.Placements, d.Placement)
		for _, a := range d.By {
			out.By = append(out.By, Writer{d.Cluster, a})
		}
	}
	for _, list := range []*[]string{&out.Rules, &out.Placements} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	for _, f := range it.files {
		out.Edits = append(out.Edits, FileEdit{f.Path, f.Diff()})
	}
	return out
}

// A RefusedError says why a request is refused, and what to do instead.
type RefusedError struct {
	why string
	// Temporary says that the same request may be accepted a little later.
	Temporary bool
}

func (e *RefusedError) Error() string { return e.why }

func refuse(format string, args ...any) error {
	return &RefusedError{why: fmt.Sprintf(format, args...)}
}

func refuseForNow(format string, args ...any) error {
	return &RefusedError{why: fmt.Sprintf(format, args...), Temporary: true}
}
