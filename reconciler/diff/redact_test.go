package diff

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
)

const secret = `
apiVersion: v1
kind: Secret
metadata:
  name: s
  labels: {app: web}
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: |
      {"apiVersion":"v1","kind":"Secret","stringData":{"password":"older-canary"}}
    note: the password is sw0rdfish-canary
    team: web
data:
  password: c3cwcmRmaXNoLWNhbmFyeQ==
  empty: ""
stringData:
  user: admin-canary
type: Opaque
`

func TestRedactMasksSecretsAndNothingElse(t *testing.T) {
	o := object(t, secret)
	before := o.DeepCopy()
	want := object(t, `
apiVersion: v1
kind: Secret
metadata:
  name: s
  labels: {app: web}
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: (redacted for security reasons)
    note: the password is (redacted for security reasons)
    team: web
data:
  password: (redacted for security reasons)
  empty: ""
stringData:
  user: (redacted for security reasons)
type: Opaque
`)
	if got := Redact(o); !reflect.DeepEqual(got, want) {
		t.Errorf("redacted:\n got %v\nwant %v", got.Object, want.Object)
	}
	if !reflect.DeepEqual(o, before) {
		t.Error("the object itself was changed")
	}
	for _, harmless := range []string{web, "{apiVersion: v1, kind: ConfigMap, data: {a: b}}", "{apiVersion: vault/v1, kind: Secret, data: {path: x}}"} {
		if o := object(t, harmless); !reflect.DeepEqual(Redact(o), o) {
			t.Errorf("redacted, though there is nothing secret in it: %v", Redact(o).Object)
		}
	}
	if Redact(nil) != nil {
		t.Error("nothing was made something")
	}
}

func TestRedactFindsSecretsInsideOthers(t *testing.T) {
	o := object(t, `{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Secret, data: {p: Y2FuYXJ5}},
		{apiVersion: x/v1, kind: Object, spec: {manifest: {apiVersion: v1, kind: Secret, stringData: {p: canary}}}}]}`)
	shown, _ := json.Marshal(Redact(o).Object)
	if strings.Contains(string(shown), "canary") || strings.Contains(string(shown), "Y2FuYXJ5") || strings.Count(string(shown), Mask) != 2 {
		t.Errorf("redacted: %s", shown)
	}
}

// In a ConfigMap that is an envelope, manifests of Secrets and those that cannot be parsed are
// masked. Other manifests, and the data of other ConfigMaps, are shown.
func TestRedactMasksSecretsInEnvelopes(t *testing.T) {
	const data = `data: {secret: "{apiVersion: v1, kind: Secret, stringData: {p: canary}}", list: "apiVersion: v1\nkind: List\nitems:\n- {kind: Secret, apiVersion: v1, data: {p: Y2FuYXJ5}}",
		broken: "kind: Secret: canary", text: canary, role: "{apiVersion: v1, kind: ServiceAccount, metadata: {name: robot}}", empty: ""}}`
	shown := Redact(object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: x, annotations: {kubernetes-fleet.io/envelope-configmap: "true"}}, `+data)).Object
	text, _ := json.Marshal(shown)
	if strings.Contains(string(text), "canary") || strings.Contains(string(text), "Y2FuYXJ5") || strings.Count(string(text), Mask) != 4 || !strings.Contains(string(text), "robot") {
		t.Errorf("redacted: %s", text)
	}
	if text, _ := json.Marshal(Redact(object(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, `+data)).Object); strings.Contains(string(text), Mask) {
		t.Errorf("of no envelope: %s", text)
	}
}

func TestScrubFindsEveryWayToQuoteAValue(t *testing.T) {
	s := SecretsOf(nil, object(t, secret), object(t, `{apiVersion: v1, kind: Secret, data: {n: 4711, short: YWI=, yes: dHJ1ZQ==, pem: `+
		base64.StdEncoding.EncodeToString([]byte("-----BEGIN-----\nfirst-line\"\n  second-line\n}\n"))+`}}`))
	tests := map[string]string{
		"plain: sw0rdfish-canary.":                                 "plain: M.",
		"as stored: c3cwcmRmaXNoLWNhbmFyeQ":                        "as stored: M",
		"twice sw0rdfish-canaryadmin-canary":                       "twice MM",
		"the older one: older-canary":                              "the older one: M",
		`a line of it: "first-line\""`:                             `a line of it: "M"`,
		`a line of it: 'second-line'`:                              `a line of it: 'M'`,
		"a value of the wrong type: valueUnstructured{Value:4711}": "a value of the wrong type: valueUnstructured{Value:M}",
		"a short one: ab, 'ab'":                                    "a short one: M, 'M'",
		"a short one in words: absolute":                           "a short one in words: absolute",
		"it is true, untrue":                                       "it is M, untrue",
		"braces {} of it are no secret":                            "braces {} of it are no secret",
		"nothing at all":                                           "nothing at all",
		"":                                                         "",
	}
	for text, want := range tests {
		if got := strings.ReplaceAll(s.Scrub(text), Mask, "M"); got != want {
			t.Errorf("Scrub(%q) = %q, want %q", text, got, want)
		}
	}
	quoted, _ := json.Marshal("-----BEGIN-----\nfirst-line\"\n  second-line\n}\n")
	if got := s.Scrub("all of it: " + string(quoted)); got != `all of it: "`+Mask+`"` {
		t.Errorf("scrubbed: %s", got)
	}
}

func TestSecretsDoNotPrintThemselves(t *testing.T) {
	s := SecretsOf(object(t, secret))
	inJSON, _ := json.Marshal(s) //lint:ignore SA9005 that nothing comes out is the point
	if shown := fmt.Sprintf("%v %+v %#v %s %x %s", s, s, s, s, s, inJSON); strings.Contains(shown, "canary") || !strings.Contains(shown, Mask) {
		t.Errorf("prints %s", shown)
	}
}

// Scrub removes every value, however a text quotes it.
func TestScrubLeavesNoValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringMatching(`[a-z"\\\n ]{5,20}`).Filter(func(s string) bool { return len(strings.TrimSpace(s)) >= short }).Draw(t, "value")
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "stringData": map[string]any{"p": value}}}
		inJSON, _ := json.Marshal(value)
		inGo := strconv.Quote(value)
		for _, quoted := range []string{value, inGo[1 : len(inGo)-1], string(inJSON[1 : len(inJSON)-1]), base64.StdEncoding.EncodeToString([]byte(value))} {
			text := SecretsOf(o).Scrub("<<" + quoted + ">>")
			if strings.Contains(strings.ReplaceAll(text, Mask, ""), quoted) || !strings.Contains(text, Mask) {
				t.Fatalf("%q is still in %q", quoted, text)
			}
		}
	})
}

func TestErrorQuotesNoSecretAndKeepsItsReason(t *testing.T) {
	s := SecretsOf(object(t, secret))
	refused := apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "s", nil)
	refused.ErrStatus.Message = `Secret "s" is invalid: data: "sw0rdfish-canary" is bad`
	refused.ErrStatus.Details.Causes = []metav1.StatusCause{{Field: "data", Message: "bad: c3cwcmRmaXNoLWNhbmFyeQ=="}}
	err := s.Error(fmt.Errorf("apply secret s: %w", refused))
	if want := `apply secret s: Secret "s" is invalid: data: "` + Mask + `" is bad`; err.Error() != want {
		t.Errorf("error = %s, want %s", err, want)
	}
	if !apierrors.IsInvalid(err) {
		t.Error("it can no longer be told that the object was invalid")
	}
	for unwrapped := err; unwrapped != nil; unwrapped = errors.Unwrap(unwrapped) {
		if shown := fmt.Sprintf("%v %+v %#v", unwrapped, unwrapped, unwrapped); strings.Contains(shown, "canary") || strings.Contains(shown, "c3cwcmRm") {
			t.Errorf("shows the canary: %s", shown)
		}
	}
	if refused.ErrStatus.Details.Causes[0].Message != "bad: c3cwcmRmaXNoLWNhbmFyeQ==" {
		t.Error("the error itself was changed")
	}

	harmless := fmt.Errorf("apply secret s: %w", context.DeadlineExceeded)
	if got := s.Error(harmless); got != harmless {
		t.Errorf("an error without secrets became %v", got)
	}
	if got := s.Error(errors.New("boom admin-canary")); got.Error() != "boom "+Mask || errors.Unwrap(got) != nil {
		t.Errorf("error = %v", got)
	}
	if s.Error(nil) != nil {
		t.Error("no error became one")
	}
}

// Fields that the annotation lists are masked like those of a Secret, in the manifest and on the member, whatever item of a
// list they are in; and so are their values wherever a text quotes them.
func TestSecretFieldsAreMasked(t *testing.T) {
	object := func(value, extra string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"name": "web", "annotations": map[string]any{"note": "it is " + value}},
			"spec": map[string]any{"replicas": int64(3), "env": []any{
				map[string]any{"name": "other", "value": extra}, map[string]any{"name": "token", "value": value},
			}},
		}}
	}
	hub, member := object("canaryInGit", "canaryOther"), object("canaryOnMember", "canaryElsewhere")
	hub.SetAnnotations(map[string]string{"gitfleet.dev/secret-fields": "/spec/env/1/value /spec/none"})
	for name, o := range map[string]*unstructured.Unstructured{"hub": hub} {
		text, _ := Redact(o).MarshalJSON()
		if strings.Contains(string(text), "canary") || !strings.Contains(string(text), `"replicas":3`) {
			t.Errorf("%s: %s", name, text)
		}
	}
	if text := fmt.Sprintf("%+v", Compare(hub, member, Options{})); strings.Contains(text, "canary") || !strings.Contains(text, "/spec/env/1/value") {
		t.Error(text)
	}
	was, is := RedactChange(hub, member)
	if text := fmt.Sprint(was.Object, is.Object); strings.Contains(text, "canary") {
		t.Error(text)
	}
	if err := SecretsOf(hub, member).Error(errors.New("invalid: canaryInGit, canaryOnMember, canaryElsewhere")); strings.Contains(err.Error(), "canary") {
		t.Error(err)
	}
	if hub.Object["spec"].(map[string]any)["env"].([]any)[1].(map[string]any)["value"] != "canaryInGit" {
		t.Error("the object itself was changed")
	}
}
