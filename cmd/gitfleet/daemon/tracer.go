package daemon

import (
	"context"
	"time"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/gitsource"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/member"
	"github.com/gitfleet/gitfleet/reconciler/member/kubeconfig"
	"github.com/gitfleet/gitfleet/reconciler/status"
)

// A tracer determines the commit that last changed an object: an annotation of the live object
// has its hash, and the clone has the commit.
type tracer struct {
	cfg         settings.Config
	credentials kubeconfig.Sources
	repo        *gitsource.Repo
}

// longestTrace is the timeout of the request to the member.
const longestTrace = 5 * time.Second

// touched sets the commit of a trace, or the reason why it is not known.
func (r *tracer) touched(ctx context.Context, report *status.Report, t *status.Trace, o *api.Object) {
	asking, cancel := context.WithTimeout(ctx, longestTrace)
	defer cancel()
	kubeContext := ""
	for _, c := range report.Clusters {
		if c.Name == t.Cluster {
			kubeContext = c.Annotations[api.ContextAnnotation]
		}
	}
	live, err := member.Read(asking, r.cfg.MemberConfig(t.Cluster, kubeContext, r.credentials, nil), []*api.Object{o})
	hash := ""
	switch {
	case err != nil:
		t.Unknown = err.Error()
		return
	case live[0] != nil:
		hash = live[0].GetAnnotations()[api.CommitAnnotation]
	}
	if hash == "" {
		t.Unknown = "the object is not there, or not gitfleet's"
		return
	}
	t.Commit = &status.TracedCommit{Hash: hash}
	if c, err := r.repo.Commit(ctx, hash); err == nil {
		t.Commit.Author, t.Commit.Signer, t.Commit.Time, t.Commit.Subject = c.Author, c.Signer, c.Time, c.Subject
	}
}
