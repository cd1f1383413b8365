package kubeapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	apistorage "k8s.io/apiserver/pkg/storage"

	"github.com/gitfleet/gitfleet/reconciler/server/store"
)

// storage reads one kind in one version.
type storage struct {
	store   *store.Store
	kind    *kind
	version string
}

var (
	_ rest.Getter             = (*storage)(nil)
	_ rest.Lister             = (*storage)(nil)
	_ rest.Watcher            = (*storage)(nil)
	_ rest.Scoper             = (*storage)(nil)
	_ rest.ShortNamesProvider = (*storage)(nil)
	_ rest.CategoriesProvider = (*storage)(nil)
)

// NamespaceScoped implements rest.Scoper.
func (s *storage) NamespaceScoped() bool { return s.kind.namespaced }

// ShortNames implements rest.ShortNamesProvider.
func (s *storage) ShortNames() []string { return s.kind.short }

// Categories implements rest.CategoriesProvider.
func (s *storage) Categories() []string { return s.kind.categories }

// NewList implements rest.Lister.
func (s *storage) NewList() runtime.Object { return &list{} }

// Get implements rest.Getter.
func (s *storage) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	o := s.store.Get(s.kind.storeKey(), s.namespace(ctx), name)
	if o == nil {
		return nil, apierrors.NewNotFound(s.kind.resource(s.version).GroupResource(), name)
	}
	return s.show(o), nil
}

// namespace returns the requested namespace. A Namespace counts as an object in itself.
func (s *storage) namespace(ctx context.Context) string {
	if !s.kind.namespaced {
		return ""
	}
	return request.NamespaceValue(ctx)
}

func (s *storage) query(ctx context.Context, o *internalversion.ListOptions) store.Query {
	return store.Query{Kind: s.kind.storeKey(), Namespace: s.namespace(ctx), Labels: o.LabelSelector, Fields: o.FieldSelector}
}

// A mark is the continue token of a list. Version is that of the first page, so that a watch
// from there misses no change between the pages.
type mark struct {
	Version         uint64
	Namespace, Name string
}

// List implements rest.Lister.
func (s *storage) List(ctx context.Context, o *internalversion.ListOptions) (runtime.Object, error) {
	var after mark
	if o.Continue != "" {
		raw, err := base64.RawURLEncoding.DecodeString(o.Continue)
		if err != nil || json.Unmarshal(raw, &after) != nil {
			return nil, apierrors.NewBadRequest("continue: not a token of this server")
		}
	} else if err := s.fresh(o); err != nil {
		return nil, err
	}
	page := s.store.List(s.query(ctx, o), after.Namespace, after.Name, int(o.Limit))
	if after.Version == 0 {
		after.Version = page.Version
	}
	l := &list{Items: page.Objects}
	l.APIVersion, l.Kind = s.kind.gvk(s.version).GroupVersion().String(), s.kind.name+"List"
	l.ResourceVersion = strconv.FormatUint(after.Version, 10)
	if page.More {
		last := page.Objects[len(page.Objects)-1]
		raw, err := json.Marshal(mark{after.Version, last.Namespace, last.Name})
		if err != nil {
			return nil, err
		}
		l.Continue = base64.RawURLEncoding.EncodeToString(raw)
		if left := int64(page.Left); left > 0 { // like an API server, which leaves it out with a selector
			l.RemainingItemCount = &left
		}
	}
	for i, o := range l.Items {
		l.Items[i] = s.show(o)
	}
	return l, nil
}

// fresh reports whether a list satisfies the requested resource version. Only the newest
// version is available.
func (s *storage) fresh(o *internalversion.ListOptions) error {
	requested, err := parseVersion(o.ResourceVersion)
	if err != nil || requested == 0 {
		return err
	}
	now := s.store.Version()
	switch {
	case requested > now:
		return apistorage.NewTooLargeResourceVersionError(requested, now, 1)
	case o.ResourceVersionMatch == metav1.ResourceVersionMatchExact && requested < now:
		return apierrors.NewResourceExpired(fmt.Sprintf("the resource version %d is not kept any more; the newest is %d", requested, now))
	}
	return nil
}

func parseVersion(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest(fmt.Sprintf("resourceVersion %q: not a number", text))
	}
	return v, nil
}

// bookmarks is the time between two bookmarks.
const bookmarks = time.Minute

// Watch implements rest.Watcher.
func (s *storage) Watch(ctx context.Context, o *internalversion.ListOptions) (watch.Interface, error) {
	from, err := parseVersion(o.ResourceVersion)
	if err != nil {
		return nil, err
	}
	w := store.Watch{Query: s.query(ctx, o), From: from, Every: bookmarks, Show: s.show, Gone: gone}
	// a watch without a version begins with all existing objects, unless the options say
	// otherwise
	w.Initial = from == 0
	if o.SendInitialEvents != nil {
		w.Initial = *o.SendInitialEvents
		if !w.Initial && from == 0 {
			w.From = s.store.Version()
		}
	}
	if o.AllowWatchBookmarks {
		first := o.SendInitialEvents != nil && *o.SendInitialEvents
		w.Bookmark = func(version uint64, initial bool) *store.Object { return s.bookmark(version, initial && first) }
	}
	watcher, err := s.store.Watch(ctx, w)
	if err != nil {
		return nil, apierrors.NewResourceExpired(fmt.Sprintf("resource version %s: %v", o.ResourceVersion, err))
	}
	return watcher, nil
}

func gone(err error) watch.Event {
	status := apierrors.NewResourceExpired(err.Error()).Status()
	return watch.Event{Type: watch.Error, Object: &status}
}

// bookmark is an object with only a version.
func (s *storage) bookmark(version uint64, first bool) *store.Object {
	o := &store.Object{}
	o.APIVersion, o.Kind = s.kind.gvk(s.version).ToAPIVersionAndKind()
	o.ResourceVersion = strconv.FormatUint(version, 10)
	if first {
		o.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	o.Content = func(meta metav1.ObjectMeta) (any, error) {
		return &metav1.PartialObjectMetadata{TypeMeta: o.TypeMeta, ObjectMeta: meta}, nil
	}
	return o
}

// show returns an object in the requested version.
func (s *storage) show(o *store.Object) *store.Object {
	if s.version == s.kind.versions[0] {
		return o
	}
	return o.As(s.version, s.convert)
}

func (s *storage) convert(o *store.Object) *store.Object {
	out := &store.Object{ObjectMeta: o.ObjectMeta, Value: o.Value, Field: o.Field}
	out.APIVersion, out.Kind = s.kind.gvk(s.version).ToAPIVersionAndKind()
	out.Content = func(metav1.ObjectMeta) (any, error) { return without(o, out.APIVersion, s.kind.lacks[s.version]) }
	return out
}

// without returns an object in another version, without the fields that it does not have.
func without(o *store.Object, apiVersion string, fields []string) (any, error) {
	raw, err := o.JSON()
	if err != nil {
		return nil, err
	}
	content := map[string]any{}
	if err := json.Unmarshal(raw, &content); err != nil {
		return nil, err
	}
	content["apiVersion"] = apiVersion
	for _, field := range fields {
		remove(content, field)
	}
	return content, nil
}

// remove removes a field, given as a dotted path, in which [] stands for the items of a list.
func remove(content map[string]any, path string) {
	head, rest, nested := strings.Cut(path, ".")
	if !nested {
		delete(content, head)
		return
	}
	switch inner := content[strings.TrimSuffix(head, "[]")].(type) {
	case map[string]any:
		remove(inner, rest)
	case []any:
		for _, item := range inner {
			if m, ok := item.(map[string]any); ok {
				remove(m, rest)
			}
		}
	}
}

func (a *API) scope(s *storage) *handlers.RequestScope {
	gvk := s.kind.gvk(s.version)
	return &handlers.RequestScope{
		Namer:      handlers.ContextBasedNaming{Namer: meta.NewAccessor(), ClusterScoped: !s.kind.namespaced},
		Serializer: a.codecs, StandardSerializers: a.codecs.whole(),
		ParameterCodec: metainternalversionscheme.ParameterCodec, Convertor: convertor{s.kind}, TableConvertor: s,
		Resource: s.kind.resource(s.version), Kind: gvk, MetaGroupVersion: metav1.SchemeGroupVersion, HubGroupVersion: gvk.GroupVersion(),
	}
}
