package main

import (
	"cmp"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

func newTree() *cobra.Command {
	var at connection
	var cluster string
	var out format
	cmd := &cobra.Command{
		Use:   "tree crp/NAME|rp/NAMESPACE/NAME",
		Short: "Show a placement with its clusters and their objects",
		Long: `Tree lists the clusters of a placement with their progress and commit, and below
each cluster its objects with their state. Objects from an envelope are listed
below the envelope.`,
		Example: `  gitfleet tree crp/web
  gitfleet tree rp/shop/web --cluster member-3`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			c, err := at.client()
			if err != nil {
				return err
			}
			name, err := c.placement(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			query := url.Values{"placement": {name}}
			if cluster != "" {
				query.Set("cluster", api.ClusterName(cluster))
			}
			tree := &status.Tree{}
			if err := c.get(cmd.Context(), "/tree", query, tree); err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			if !out.isText() {
				return out.write(w, tree)
			}
			r, err := c.only(cmd.Context(), part{placement: name})
			if err != nil {
				return err
			}
			_, err = io.WriteString(w, treeText(tree, r, pageOf(w)))
			return err
		},
	}
	cmd.Flags().StringVar(&cluster, "cluster", "", "only this member cluster")
	out.bind(cmd.Flags(), "text")
	at.bind(cmd.Flags())
	return cmd
}

// The lines of a tree.
const (
	fork, lastFork = "├─ ", "└─ "
	stem, noStem   = "│  ", "   "
)

// A twig is a line of a tree, and what is below it.
type twig struct {
	text  string
	below []*twig
}

func (t *twig) add(text string) *twig {
	n := &twig{text: text}
	t.below = append(t.below, n)
	return n
}

func (t *twig) write(b *strings.Builder, indent string) {
	for i, n := range t.below {
		mark, next := fork, stem
		if i == len(t.below)-1 {
			mark, next = lastFork, noStem
		}
		b.WriteString(strings.TrimRight(indent+mark+n.text, " ") + "\n")
		n.write(b, indent+next)
	}
}

// treeText draws a tree; the report says how far the clusters are.
func treeText(tree *status.Tree, r *status.Report, p page) string {
	root := &twig{}
	stages := map[string]*overviewStage{}
	for _, s := range stagesOf(r, tree.Placement) {
		stages[s.cluster] = &s
	}
	for _, c := range tree.Clusters {
		head := p.paint(bold, c.Cluster)
		if s := stages[c.Cluster]; s != nil {
			head += "  " + p.paint(styleOf(s.state), string(s.state))
			if c.Commit != "" {
				head += "  " + short(c.Commit)
			}
			if s.why != "" && !slices.ContainsFunc(c.Objects, func(o status.TreeObject) bool { return o.State == status.ObjectFailed }) {
				head += "  " + harmless(s.why)
			}
		}
		branch := root.add(head)
		if s := stages[c.Cluster]; s != nil {
			for _, text := range s.notDeleted {
				branch.add(p.paint(red, "not deleted") + "  " + harmless(text))
			}
		}
		objects(branch, c.Objects, p)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n", p.paint(bold, tree.Placement), p.paint(dim, cmp.Or(tree.Origin, "removed from the repository")))
	root.write(&b, "")
	return b.String()
}

// objects hangs objects below their cluster, and below their envelope if they
// came out of one.
func objects(below *twig, all []status.TreeObject, p page) {
	envelopes := map[api.EnvelopeIdentifier]*twig{}
	width := 0
	for _, o := range all {
		width = max(width, wide(o.ID().String()))
	}
	for _, o := range all {
		at := below
		if e := o.Envelope; e != nil {
			if envelopes[*e] == nil {
				envelopes[*e] = below.add(envelopeName(e) + p.paint(dim, "  envelope"))
			}
			at = envelopes[*e]
		}
		text := fit(o.ID().String(), width) + "  " + p.paint(objectStyles[o.State], string(o.State))
		if o.Message != "" {
			text += "  " + harmless(o.Message)
		}
		at.add(text)
	}
}

var objectStyles = map[status.TreeState]style{
	status.ObjectAvailable: green, status.ObjectProgressing: cyan, status.ObjectFailed: red, status.ObjectPending: cyan, status.ObjectYielded: dim,
}

func envelopeName(e *api.EnvelopeIdentifier) string {
	parts := []string{string(e.Type)}
	if e.Namespace != "" {
		parts = append(parts, e.Namespace)
	}
	return strings.Join(append(parts, e.Name), "/")
}

// An overviewStage is how far a placement is on one cluster, and why no further.
type overviewStage struct {
	cluster string
	state   state
	why     string
	// notDeleted are objects that the cluster does not let go, and those that were
	// deleted and are not gone yet.
	notDeleted []string
}

// stagesOf says of each cluster of a placement how far it is.
func stagesOf(r *status.Report, placement string) []overviewStage {
	statuses, members := placementStatuses(r), statesOf(r)
	var out []overviewStage
	for _, d := range r.Details {
		if d.Placement != placement {
			continue
		}
		on := perCluster(statuses[placement])
		for j := range d.Clusters {
			c := &d.Clusters[j]
			s := overviewStage{cluster: c.Cluster, state: stateOf(c, on[c.Cluster], members)}
			switch s.state {
			case waiting:
				s.why = c.Held
			case failed:
				s.why = failureOf(c, on[c.Cluster])
			case unreachable, forbidden:
				s.why = reasonOfAbsence(r, c.Cluster)
			}
			s.notDeleted = append(s.notDeleted, c.DeletionErrors...)
			for _, text := range c.Lingering {
				s.notDeleted = append(s.notDeleted, text+": deleted, and not gone yet")
			}
			out = append(out, s)
		}
	}
	return out
}

// perCluster are the parts of a status, by cluster.
func perCluster(s *api.PlacementStatus) map[string]*api.PerClusterPlacementStatus {
	out := map[string]*api.PerClusterPlacementStatus{}
	if s != nil {
		for i := range s.PlacementStatuses {
			out[s.PlacementStatuses[i].ClusterName] = &s.PlacementStatuses[i]
		}
	}
	return out
}

func reasonOfAbsence(r *status.Report, cluster string) string {
	for _, c := range r.Clusters {
		if c.Name == cluster {
			return absence(c).Reason
		}
	}
	return ""
}
