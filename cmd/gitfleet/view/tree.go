package view

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/client"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/output"
	"github.com/gitfleet/gitfleet/cmd/gitfleet/overview"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// NewTree returns the command tree.
func NewTree() *cobra.Command {
	var at client.Connection
	var cluster string
	var out output.Format
	cmd := &cobra.Command{
		Use:   "tree PLACEMENT",
		Short: "Show a placement with its clusters and their objects",
		Long: `Tree lists the clusters of a placement with their progress and commit, and below
each cluster its objects with their state. Objects from an envelope are listed
below the envelope.`,
		Example: `  gitfleet tree crp/web
  gitfleet tree rp/shop/web --cluster member-3`,
		Args: cobra.ExactArgs(1),
		RunE: at.WithClient(func(cmd *cobra.Command, args []string, c *client.Client) error {
			name, err := c.Placement(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			tree := &status.Tree{}
			if err := c.Get(cmd.Context(), "/tree", url.Values{"placement": {name}, "cluster": {api.ClusterName(cluster)}}, tree); err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			if !out.IsText() {
				return out.Write(w, tree)
			}
			r, err := c.Report(cmd.Context(), client.Subject{Placement: name})
			if err != nil {
				return err
			}
			return out.Print(w, tree, func() string { return treeText(tree, r, output.PageOf(w)) })
		}),
	}
	cmd.Flags().StringVar(&cluster, "cluster", "", "only this member cluster")
	out.Bind(cmd.Flags(), "text")
	at.Bind(cmd.Flags())
	return cmd
}

// The connectors of a tree.
const (
	fork, lastFork = "├─ ", "└─ "
	stem, noStem   = "│  ", "   "
)

// A node is a line of a tree, with the lines below it.
type node struct {
	text  string
	below []*node
}

func (t *node) add(text string) *node {
	n := &node{text: text}
	t.below = append(t.below, n)
	return n
}

func (t *node) write(b *strings.Builder, indent string, p output.Page) {
	p.Width -= output.Width(fork)
	for i, n := range t.below {
		mark, next := fork, stem
		if i == len(t.below)-1 {
			mark, next = lastFork, noStem
		}
		hanging := indent + next + noStem
		if len(n.below) > 0 {
			hanging = indent + next + stem
		}
		folded := strings.ReplaceAll(p.Fold(n.text, noStem), "\n"+noStem, "\n"+hanging)
		b.WriteString(strings.TrimRight(indent+mark+folded, " ") + "\n")
		n.write(b, indent+next, p)
	}
}

// treeText draws a tree, with the progress of the clusters from the report.
func treeText(tree *status.Tree, r *status.Report, p output.Page) string {
	root := &node{}
	stages := map[string]*overview.Stage{}
	for _, s := range overview.StagesOf(r, tree.Placement) {
		stages[s.Cluster] = &s
	}
	updateRunNode(root, tree, p)
	for _, c := range tree.Clusters {
		head := p.Paint(output.Bold, c.Cluster)
		if s := stages[c.Cluster]; s != nil {
			head += "  " + p.Paint(overview.StyleOf(s.State), string(s.State))
			if c.Commit != "" {
				head += "  " + output.ShortHash(c.Commit)
			}
			if c.Stage != "" && tree.UpdateRun.Finished.IsZero() {
				head += "  stage " + c.Stage
			}
			if s.Why != "" && !slices.ContainsFunc(c.Objects, func(o status.TreeObject) bool { return o.State == status.ObjectFailed }) {
				head += "  " + output.Sanitize(s.Why)
			}
		}
		branch := root.add(head)
		if s := stages[c.Cluster]; s != nil {
			for _, text := range s.NotDeleted {
				branch.add(p.Paint(output.Red, "not deleted") + "  " + output.Sanitize(text))
			}
		}
		objects(branch, c.Objects, p)
	}
	var b strings.Builder
	fmt.Fprintln(&b, p.Fold(p.Paint(output.Bold, tree.Placement)+"  "+p.Paint(output.Dim, cmp.Or(tree.Origin, "removed from the repository")), "  "))
	root.write(&b, "", p)
	return b.String()
}

// updateRunNode adds the update run that is in force or, if none is, the newest, with its stages; nothing if it has finished.
func updateRunNode(root *node, tree *status.Tree, p output.Page) {
	run := tree.UpdateRun
	if run == nil || !run.Finished.IsZero() {
		return
	}
	of := root.add(p.Paint(output.Bold, "run "+run.Name) + "  " + run.Reason + "  " + output.ShortHash(run.Commit) + "  " + output.Sanitize(run.WhereWithoutGates(tree.Placement)))
	for _, s := range run.Stages {
		of.add(output.Sanitize(s.Text()))
	}
}

// objects adds objects below their cluster, or below their envelope if they are from one.
func objects(below *node, all []status.TreeObject, p output.Page) {
	envelopes := map[api.EnvelopeIdentifier]*node{}
	width := 0
	for _, o := range all {
		width = max(width, output.Width(o.ID().String()))
	}
	if p.Terminal { // one long name does not make the lines of all others too wide
		width = min(width, p.Width-len("progressing")-12)
	}
	for _, o := range all {
		at := below
		if e := o.Envelope; e != nil {
			if envelopes[*e] == nil {
				envelopes[*e] = below.add(strings.ReplaceAll(string(e.Type)+"/"+e.Namespace+"/"+e.Name, "//", "/") + p.Paint(output.Dim, "  envelope"))
			}
			at = envelopes[*e]
		}
		text := fmt.Sprintf("%-*s  ", width, output.Sanitize(o.ID().String())) + p.Paint(objectStyles[o.State], string(o.State))
		if o.Message != "" {
			text += "  " + output.Sanitize(o.Message)
		}
		at.add(text)
	}
}

var objectStyles = map[status.TreeState]output.Style{
	status.ObjectAvailable: output.Green, status.ObjectProgressing: output.Cyan, status.ObjectFailed: output.Red, status.ObjectPending: output.Cyan, status.ObjectYielded: output.Dim,
}
