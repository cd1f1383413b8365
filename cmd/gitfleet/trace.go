package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

func newTrace() *cobra.Command {
	var at connection
	var namespace, cluster string
	var out format
	cmd := &cobra.Command{
		Use:   "trace KIND/NAME --cluster CLUSTER",
		Short: "Show which file, commit and placement an object comes from",
		Long: `Trace follows an object on a member cluster back to Git: its file and line, the
commit that last changed it and its author, the placement that selects it, why
the placement is on the cluster, the overrides that changed it, and its state.`,
		Example: `  gitfleet trace deployment/web -n shop --cluster east`,
		Args:    cobra.ExactArgs(1),
		PreRunE: func(*cobra.Command, []string) error {
			if cluster == "" {
				return errors.New("--cluster: name the member cluster that the object is on, such as --cluster east")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			t, err := at.trace(cmd.Context(), args[0], namespace, cluster)
			if err != nil {
				return err
			}
			if !out.isText() {
				return out.write(cmd.OutOrStdout(), t)
			}
			return printTrace(cmd.OutOrStdout(), t)
		},
	}
	cmd.Flags().StringVar(&cluster, "cluster", "", "member cluster the object is on")
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace of the object")
	out.bind(cmd.Flags(), "text")
	at.bind(cmd.Flags())
	cmd.MarkFlagRequired("cluster")
	return cmd
}

// trace asks the daemon for the trace of an object, which is named as api.ParseObject
// takes it, on a member cluster.
func (c *connection) trace(ctx context.Context, name, namespace, cluster string) (*status.Trace, error) {
	object, err := api.ParseObject(name, namespace)
	if err != nil {
		return nil, err
	}
	daemon, err := c.client()
	if err != nil {
		return nil, err
	}
	t := &status.Trace{}
	err = daemon.get(ctx, "/trace", url.Values{
		"kind": {object.Kind}, "namespace": {object.Namespace}, "name": {object.Name}, "cluster": {api.ClusterName(cluster)},
	}, t)
	return t, err
}

func printTrace(w io.Writer, t *status.Trace) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s\n", t.ID(), t.Cluster)
	row := func(what, text string) {
		if text != "" {
			fmt.Fprintf(&b, "  %-11s %s\n", what, text)
		}
	}
	row("file", t.Origin)
	row("built by", t.Kustomization)
	if e := t.Envelope; e != nil {
		row("envelope", fmt.Sprintf("%s %s", e.Type, strings.TrimPrefix(e.Namespace+"/"+e.Name, "/")))
	}
	if c := t.Commit; c != nil {
		row("commit", c.Hash)
		if c.Author != "" {
			row("", fmt.Sprintf("%s, %s: %s", c.Author, c.Time.UTC().Format(time.RFC3339), c.Subject))
		}
	} else {
		row("commit", "not known: "+t.Unknown)
	}
	row("placement", strings.TrimSuffix(t.Placement+"  ("+t.PlacementOrigin+")", "  ()"))
	row("why", t.Why)
	row("revision", fmt.Sprintf("%s%s", short(t.Revision), assignedAt(t.Assigned)))
	row("waits", t.Held)
	for _, o := range t.Overrides {
		row("override", o)
	}
	if len(t.Overrides) > 0 && !t.Overridden {
		row("", "as in the file all the same")
	}
	row("state", t.State)
	row("suspended", t.Suspended)
	if d := t.Drift; d != nil {
		row("drift", fmt.Sprintf("%s%s, last seen %s, by %s", d.State, times(d.Count), d.LastSeen.UTC().Format(time.RFC3339), names(d.By)))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func assignedAt(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return ", assigned " + t.UTC().Format(time.RFC3339)
}

// A tracer finds out which commit last touched an object: the object says so
// itself, and Git knows the commit.
type tracer struct {
	cfg         Config
	credentials member.Credentials
	repo        *gitsource.Repo
}

// longestTrace is how long a member may take to say what it has.
const longestTrace = 5 * time.Second

// touched puts the commit into a trace, or why it is not known.
func (r *tracer) touched(ctx context.Context, report *status.Report, t *status.Trace, o *api.Object) {
	asking, cancel := context.WithTimeout(ctx, longestTrace)
	defer cancel()
	kubeContext := ""
	for _, c := range report.Clusters {
		if c.Name == t.Cluster {
			kubeContext = c.Annotations[api.ContextAnnotation]
		}
	}
	marks, err := member.Marks(asking, member.Config{
		Name: t.Cluster, Fleet: r.cfg.FleetName, Log: quiet,
		Connect: func(ctx context.Context) (*rest.Config, error) {
			return r.credentials.Config(ctx, t.Cluster, kubeContext)
		},
	}, o.Object.GroupVersionKind(), o.ID)
	hash := marks[api.CommitAnnotation]
	switch {
	case err != nil:
		t.Unknown = err.Error()
		return
	case hash == "":
		t.Unknown = "the object is not there, or not gitfleet's"
		return
	}
	t.Commit = &status.TracedCommit{Hash: hash}
	if c, err := r.repo.Commit(ctx, hash); err == nil {
		t.Commit.Author, t.Commit.Time, t.Commit.Subject = c.Author, c.Time, c.Subject
	}
}
