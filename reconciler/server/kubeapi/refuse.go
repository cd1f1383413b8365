package kubeapi

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/yaml"

	"github.com/gitfleet/gitfleet/placement/api"
)

// maxBody limits how much of a write is read to find the name in it.
const maxBody = 1 << 20

// refuse responds that nothing can be written here, and what to change instead.
func (a *API) refuse(s *storage, info *request.RequestInfo, w http.ResponseWriter, req *http.Request) {
	name := info.Name
	if name == "" {
		name = nameIn(req.Body)
	}
	resource := s.kind.resource(s.version).GroupResource()
	err := apierrors.NewMethodNotSupported(resource, info.Verb)
	err.ErrStatus.Message = fmt.Sprintf("the hub is a Git repository, and this API only reads it: %s", a.hint(s, info.Verb, info.Namespace, name))
	err.ErrStatus.Details.Name = name
	a.fail(w, req, err)
}

// hint says what to do in Git.
func (a *API) hint(s *storage, verb, namespace, name string) string {
	if !s.kind.namespaced {
		namespace = ""
	}
	what := s.kind.plural
	if name != "" {
		what = fmt.Sprintf("%s %q", s.kind.plural, name)
	}
	where := ""
	if source := a.source.Load(); source != nil && source.Git.URL != "" {
		where = fmt.Sprintf(" (%s, %s)", source.Git.URL, cmp.Or(source.Git.Ref, "HEAD"))
	}
	if o := s.store.Get(s.kind.storeKey(), namespace, name); o != nil && o.Annotations[api.PathAnnotation] != "" {
		return fmt.Sprintf("%s is %s there%s; change that file and commit", what, o.Annotations[api.PathAnnotation], where)
	}
	switch {
	case s.kind.approvals && name != "" && a.inGit:
		return fmt.Sprintf("%s is in no file there%s; add one and commit: the configuration asks for approvals by commits (rollout.approvals: git)", what, where)
	case s.kind.approvals && name != "":
		return fmt.Sprintf("%s is in no file there%s; add one and commit, or approve it by its status (kubectl patch --subresource=status)", what, where)
	case s.kind.generated:
		return "gitfleet itself writes " + what
	case name == "" && verb == "create":
		return fmt.Sprintf("add a file to it%s and commit", where)
	case name == "":
		return fmt.Sprintf("change the files of %s there%s and commit", what, where)
	case strings.HasPrefix(verb, "delete"):
		return fmt.Sprintf("%s is in no file there%s", what, where)
	}
	return fmt.Sprintf("%s is in no file there%s; add one and commit", what, where)
}

// nameIn returns the name of the object in a request body.
func nameIn(body io.Reader) string {
	raw, err := io.ReadAll(io.LimitReader(body, maxBody))
	if err != nil {
		return ""
	}
	var o metav1.PartialObjectMetadata
	if yaml.Unmarshal(raw, &o) != nil {
		return ""
	}
	return o.Name
}
