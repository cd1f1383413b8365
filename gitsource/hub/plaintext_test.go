package hub

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/gitfleet/gitfleet/gitsource/hub/build"
	"github.com/gitfleet/gitfleet/gitsource/hub/problem"
	"github.com/gitfleet/gitfleet/gitsource/hub/sops"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/test/sopsfile"
)

// fakeKeys decrypt what package sopsfile encrypts for one recipient.
type fakeKeys struct{ recipient, version string }

func (k *fakeKeys) DataKey(_ string, recipients []sops.Recipient) ([]byte, error) {
	if recipients[0].Fields["recipient"] != k.recipient {
		return nil, sops.ErrNoKey
	}
	return bytes.Repeat([]byte{42}, 32), nil
}

func (k *fakeKeys) Version() string { return k.version }

const recipient = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"

// What is encrypted is decrypted in memory, wherever it is: values of Secrets and of other kinds, and files that a
// kustomization reads. The fields are marked, and hashes cannot be guessed.
func TestEncryptedFilesAreDecrypted(t *testing.T) {
	deployment := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec:\n  selector: {matchLabels: {app: web}}\n  template:\n" +
		"    metadata: {labels: {app: web}}\n    spec:\n      containers:\n      - name: web\n        image: web:1\n        env:\n        - name: TOKEN\n          value: canaryInEnv\n"
	files := map[string]string{
		"secret.yaml":     sopsfile.Encrypt("apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: shop}\nstringData: {password: canaryInSecret}\n", "^stringData$", recipient),
		"deployment.yaml": sopsfile.Encrypt(deployment, "^env$", recipient),
		"plain.yaml":      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain, namespace: shop}\ndata: {a: b}\n",
		"k/kustomization.yaml": "namespace: shop\nresources: [cm.yaml]\ngeneratorOptions: {disableNameSuffixHash: true}\n" +
			"secretGenerator:\n- name: generated\n  files: [app.yaml]\n",
		"k/cm.yaml":  sopsfile.Encrypt("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: built}\ndata: {url: 'https://u:canaryInURL@db', plain: x}\n", "^url$", recipient),
		"k/app.yaml": sopsfile.Encrypt("a: canaryInFile\n", "^a$", recipient),
	}
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	keys := &fakeKeys{recipient, "1"}
	loader := NewLoader(Options{Keys: keys})
	s, err := loader.Load(Commit{Hash: "1"}, fsys)
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Warnings) > 0 {
		t.Error(s.Warnings.Err())
	}
	for _, test := range []struct{ kind, name, value, fields string }{
		{"Secret", "db", "canaryInSecret", "/stringData/password"},
		{"Deployment", "web", "canaryInEnv", "/spec/template/spec/containers/0/env/0/name /spec/template/spec/containers/0/env/0/value"},
		{"ConfigMap", "built", "https://u:canaryInURL@db", "/data/url"},
		{"Secret", "generated", "YTogImNhbmFyeUluRmlsZSIK", "/data/app.yaml"},
		{"ConfigMap", "plain", "b", ""},
	} {
		group := ""
		if test.kind == "Deployment" {
			group = "apps"
		}
		o := s.Object(api.ID{Group: group, Kind: test.kind, Namespace: "shop", Name: test.name})
		if o == nil {
			t.Errorf("%s %s is missing", test.kind, test.name)
			continue
		}
		text, _ := o.Content.MarshalJSON()
		if fields := o.Content.GetAnnotations()[api.SecretFieldsAnnotation]; fields != test.fields || (o.HashKey != nil) != (fields != "") {
			t.Errorf("%s %s: secret fields %q, want %q", test.kind, test.name, fields, test.fields)
		}
		if !strings.Contains(string(text), test.value) && test.name != "generated" || strings.Contains(string(text), "ENC[") || strings.Contains(string(text), `"sops"`) {
			t.Errorf("%s %s: %s", test.kind, test.name, text)
		}
		if plain, _ := api.HashOf(o.Content.Object, nil); (plain == o.Hash) != (test.fields == "") {
			t.Errorf("%s %s: the hash is that of the plain text: %t", test.kind, test.name, plain == o.Hash)
		}
	}

	// without the key they are reported with the recipient, and the commit stays valid
	keys.recipient, keys.version = "age1other", "2"
	s, err = loader.Load(Commit{Hash: "1"}, fsys)
	if err != nil {
		t.Fatal(err)
	}
	text := s.Warnings.Err().Error()
	for _, part := range []string{"secret.yaml:1: Secret/shop/db: it is encrypted with SOPS for age " + recipient + ", and it cannot be decrypted with the configured keys", "deployment.yaml:1:", "k/cm.yaml", "k/app.yaml"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
}

// What somebody has changed without SOPS fails for that reason, and not for want of a key: once for the file, and for each object on
// its clusters.
func TestChangedFilesSayWhyTheyAreNotDecrypted(t *testing.T) {
	secret := func(name string) string {
		return "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + ", namespace: shop}\nstringData: {password: canary}\n"
	}
	changed := func(text string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(strings.Replace(sopsfile.Encrypt(text, "^stringData$", recipient), "namespace: shop", "namespace: web", 1))}
	}
	s, err := NewLoader(Options{Keys: &fakeKeys{recipient, "1"}}).Load(Commit{}, fstest.MapFS{
		"a.yaml": changed(secret("loose")), "k/built.yaml": changed(secret("built")), "k/kustomization.yaml": {Data: []byte("resources: [built.yaml]\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	text := s.Warnings.Err().Error()
	if n := strings.Count(text, "its MAC does not match"); n != 2 || strings.Contains(text, "configured keys") {
		t.Errorf("the reason is there %d times in\n%s", n, text)
	}
	for _, o := range s.Objects {
		if o.CiphertextFault == "" {
			t.Errorf("%s does not say why", o.ID)
		}
		if c := o.Ciphertext(); c != nil && (!strings.Contains(c.Message(), "its MAC does not match") || strings.Contains(c.Message(), "configured keys")) {
			t.Error(c.Message())
		}
	}
}

// A document that is encrypted as a whole, and cannot be decrypted, does not refuse the commit. It is said for whom it is encrypted,
// or what else is wrong, and where it is. An overlay with one fails for its clusters. With the key nothing of that is there.
func TestDocumentsThatAreEncryptedAsAWhole(t *testing.T) {
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: shop}\nstringData: {password: canary}\n"
	whole := sopsfile.Encrypt(secret, "", recipient)
	other := strings.Replace(whole, "ENC[AES256_GCM,data:", "ENC[AES256_GCM,data:A", 1)
	files := func(secret string) fstest.MapFS {
		return fstest.MapFS{
			"plain.yaml":  {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain, namespace: shop}\ndata: {a: b}\n")},
			"secret.yaml": {Data: []byte(secret)},
		}
	}
	for name, test := range map[string]struct {
		keys sops.Keys
		text string
		want string // of the warning
	}{
		"the key":        {&fakeKeys{recipient, "1"}, whole, ""},
		"another key":    {&fakeKeys{"age1other", "1"}, whole, "this is encrypted with SOPS as a whole for age " + recipient + ", and it cannot be decrypted with the configured keys"},
		"no keys":        {nil, whole, "this is encrypted with SOPS as a whole for age " + recipient + ", and it cannot be decrypted with the configured keys"},
		"edited by hand": {&fakeKeys{recipient, "1"}, other, "it is encrypted with SOPS and cannot be decrypted, so that its objects are not applied, and stay on clusters as they are there"},
	} {
		s, err := NewLoader(Options{Keys: test.keys}).Load(Commit{}, files(test.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		unreadable := len(s.Unreadable) == 1 && s.Unreadable[0].String() == "secret.yaml:1"
		said := len(s.Warnings) == 1 && s.Warnings[0].Path == "secret.yaml" && s.Warnings[0].Severity == problem.Failure && strings.Contains(s.Warnings[0].Message, test.want)
		if test.want == "" {
			unreadable, said = len(s.Unreadable) == 0 && len(s.Objects) == 2, len(s.Warnings) == 0
		}
		if !unreadable || !said || s.Objects[0].ID.Name != "plain" {
			t.Errorf("%s: %v, %v", name, s.Unreadable, s.Warnings)
		}
	}
	overlay := files(whole)
	overlay["fleet/fleet.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: cluster.kubernetes-fleet.io/v1beta1\nkind: MemberCluster\nmetadata: {name: east}\n---\n" +
		"apiVersion: gitfleet.dev/v1alpha1\nkind: ClusterOverlay\nmetadata: {name: web}\nspec: {path: app}\n")}
	overlay["app/kustomization.yaml"] = &fstest.MapFile{Data: []byte("resources: [secret.yaml]\n")}
	overlay["app/secret.yaml"] = overlay["secret.yaml"]
	delete(overlay, "secret.yaml")
	s, err := NewLoader(Options{Keys: &fakeKeys{"age1other", "1"}}).Load(Commit{}, overlay)
	if err != nil {
		t.Fatal(err)
	}
	web := s.Object(api.ID{Group: api.OverlayGroup, Kind: "ClusterOverlay", Name: "web"})
	if web == nil || web.Overlay.Builds["app"].Err == "" || len(s.Unreadable) > 0 {
		t.Errorf("the overlay: %v, %v", web, s.Warnings)
	}
}

// Files of remote bases are not decrypted: whoever writes them could have anything decrypted that is encrypted for the fleet. What
// is encrypted in them fails, and is not applied as it is.
func TestRemoteBasesAreNotDecrypted(t *testing.T) {
	const commit = "0123456789abcdef0123456789abcdef01234567"
	secret := sopsfile.Encrypt("apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: shop}\nstringData: {password: canaryInSecret}\n", "^stringData$", recipient)
	base := fstest.MapFS{
		"kustomization.yaml": {Data: []byte("resources: [secret.yaml, cm.yaml]\n")}, "secret.yaml": {Data: []byte(secret)},
		"cm.yaml": {Data: []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: shop}}\n")},
	}
	loader := NewLoader(Options{Keys: &fakeKeys{recipient, "1"}, Bases: func(string, string) (fs.FS, error) { return base, nil }})
	for range 2 { // the second load has what the first has kept
		s, err := loader.Load(Commit{}, fstest.MapFS{"k/kustomization.yaml": {Data: []byte("resources: ['https://example.com/org/bases?ref=" + commit + "']\n")}})
		if err != nil {
			t.Fatal(err)
		}
		if s.Object(api.ID{Kind: "ConfigMap", Namespace: "shop", Name: "c"}) == nil {
			t.Error("what is not encrypted is missing")
		}
		if o := s.Object(api.ID{Kind: "Secret", Namespace: "shop", Name: "db"}); o != nil {
			if text, _ := o.Content.MarshalJSON(); strings.Contains(string(text), "canary") {
				t.Errorf("the Secret is %s", text)
			}
		}
		if text := s.Warnings.Err().Error(); strings.Contains(text, "canary") || !strings.Contains(text, "Secret/shop/db") {
			t.Error(text)
		}
	}
}

// Neither problems nor errors have a value that is encrypted in the repository.
func TestProblemsHaveNoEncryptedValue(t *testing.T) {
	text := "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\nspec:\n  replicas: canaryReplicas\n  strategy: {type: canaryStrategy}\n  selector: {matchLabels: {app: web}}\n"
	override := "apiVersion: placement.kubernetes-fleet.io/v1beta1\nkind: ResourceOverride\nmetadata: {name: o, namespace: shop}\nspec:\n  resourceSelectors: [{group: '', version: v1, kind: ConfigMap, name: c}]\n  policy:\n    overrideRules:\n    - clusterSelector: {}\n      jsonPatchOverrides: [{op: add, path: /data/a, value: canaryInOverride}]\n"
	chart := "apiVersion: gitfleet.dev/v1alpha1\nkind: ClusterHelmChart\nmetadata: {name: c}\nspec: {chart: {path: charts/web}, namespace: web, values: {password: canaryInValues}}\n"
	gate := "apiVersion: gitfleet.dev/v1alpha1\nkind: RolloutGate\nmetadata: {name: g}\nspec: {prometheus: {address: 'https://x', query: canaryInQuery, condition: '== 1'}}\n"
	_, err := NewLoader(Options{Keys: &fakeKeys{recipient, "1"}}).Load(Commit{}, fstest.MapFS{
		"g.yaml": {Data: []byte(sopsfile.Encrypt(gate, "^query$", recipient))},
		"c.yaml": {Data: []byte(sopsfile.Encrypt(chart, "^values$", recipient))},
		"a.yaml": {Data: []byte(sopsfile.Encrypt(text, "^(replicas|strategy)$", recipient))},
		"b.yaml": {Data: []byte(sopsfile.Encrypt(override, "^value$", recipient))},
	})
	if err == nil || strings.Contains(err.Error(), "canary") || strings.Count(err.Error(), "has an encrypted value, and is shown in many places") != 3 {
		t.Error(err)
	}
}

// A kustomization copies no encrypted value, or a part of one, to where it is shown: else whoever can open a pull request
// reads it in the plan.
func TestCopiesOfEncryptedValuesStaySecret(t *testing.T) {
	const (
		config    = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: shop, labels: {l: v}}\ndata: {k: v-w}\n"
		from      = "replacements:\n- source: {kind: Secret, name: db, fieldPath: stringData.password}\n  targets: [{select: {kind: ConfigMap}, fieldPaths: [%]}]\n"
		shown     = "into the name, the namespace or the kind of an object"
		part      = "replacements[%].source.options.delimiter: it takes a part of a value that may be encrypted"
		delimiter = "options: {delimiter: '-', index: 0}"
		service   = "  targets: [{select: {kind: Service}, fieldPaths: [spec.a]}]\n"
	)
	into := func(field string) string { return strings.ReplaceAll(from, "%", field) }
	for name, test := range map[string]struct{ kustomization, says, name string }{
		"name":                  {into("metadata.name"), shown, ""},
		"namespace":             {into("metadata.namespace"), shown, ""},
		"kind":                  {into("kind"), shown, ""},
		"version":               {into("apiVersion"), shown, ""},
		"variable":              {"vars: [{name: P, objref: {apiVersion: v1, kind: Secret, name: db}, fieldref: {fieldpath: stringData.password}}]\nconfigurations: [c.yaml]\n", shown, "$(P)"},
		"label":                 {into("metadata.labels.l"), "", ""},
		"part":                  {"replacements:\n- source: {kind: Secret, fieldPath: stringData.password, " + delimiter + "}\n" + service, strings.ReplaceAll(part, "%", "0"), ""},
		"part of any kind":      {"replacements:\n- source: {name: db, fieldPath: stringData.password, " + delimiter + "}\n" + service, strings.ReplaceAll(part, "%", "0"), ""},
		"part of a copy":        {into("data.k") + "- source: {kind: ConfigMap, fieldPath: data.k, " + delimiter + "}\n" + service, strings.ReplaceAll(part, "%", "1"), ""},
		"part of another kind":  {"patches:\n- {target: {kind: Secret}, options: {allowKindChange: true}, patch: '[{op: replace, path: /kind, value: Deployment}]'}\nreplacements:\n- source: {kind: Deployment, fieldPath: stringData.password, " + delimiter + "}\n" + service, strings.ReplaceAll(part, "%", "0"), ""},
		"part in a file":        {"replacements: [{path: r.yaml}]\n", "k/r.yaml: [0].source.options.delimiter", ""},
		"part in a transformer": {"transformers: [t.yaml]\n", "a ReplacementTransformer may take a part", ""},
		"part of plain text":    {"replacements:\n- source: {kind: ConfigMap, fieldPath: data.k, " + delimiter + "}\n  targets: [{select: {kind: ConfigMap}, fieldPaths: [metadata.labels.l]}]\n", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			loader := NewLoader(Options{Keys: &fakeKeys{recipient, "1"}})
			_, err := loader.Load(Commit{Hash: "1"}, fstest.MapFS{
				"k/kustomization.yaml": {Data: []byte("resources: [s.yaml, cm.yaml]\n" + test.kustomization)},
				"k/s.yaml":             {Data: []byte(sopsfile.Encrypt("apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: shop}\nstringData: {password: canary-in-secret}\n", "^stringData$", recipient))},
				"k/cm.yaml":            {Data: []byte(strings.ReplaceAll(config, "name: x", "name: "+cmp.Or(test.name, "x")))},
				"k/c.yaml":             {Data: []byte("varReference: [{path: metadata/name, kind: ConfigMap}]\n")},
				"k/r.yaml":             {Data: []byte("- source: {kind: Secret, fieldPath: stringData.password, " + delimiter + "}\n" + service)},
				"k/t.yaml":             {Data: []byte("apiVersion: builtin\nkind: ReplacementTransformer\nmetadata: {name: r}\nreplacements:\n- source: {kind: Secret, fieldPath: stringData.password, " + delimiter + "}\n" + service)},
			})
			if said := fmt.Sprint(err); (err == nil) != (test.says == "") || !strings.Contains(said, test.says) || strings.Contains(said, "canary") {
				t.Errorf("%v, want %q", err, test.says)
			}
		})
	}
}

// What is decrypted takes bounded memory: of files that are gone nothing is kept, of large ones no text, and values beyond the limit
// are not decrypted.
func TestTheMemoryOfDecryptedFilesIsBounded(t *testing.T) {
	file := func(value string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte(sopsfile.Encrypt("apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: shop}\nstringData: {password: "+value+"}\n", "^stringData$", recipient))}
	}
	loader := NewLoader(Options{Keys: &fakeKeys{recipient, "1"}})
	load := func(files fstest.MapFS) {
		t.Helper()
		if _, err := loader.Load(Commit{Hash: "1"}, files); err != nil {
			t.Fatal(err)
		}
	}
	p := loader.plain
	for i := range 10 {
		load(fstest.MapFS{fmt.Sprint(i, ".yaml"): file("canary" + fmt.Sprint(i))})
	}
	if len(p.files) > 3 || p.size > 3*len("canary0") {
		t.Errorf("%d files with values of %d bytes are kept of 10 commits that each had one", len(p.files), p.size)
	}
	for i := range 10 {
		load(fstest.MapFS{"a.yaml": file("canary" + fmt.Sprint(i))})
	}
	if p.size > (versions+3)*len("canary0") {
		t.Errorf("values of %d bytes are kept of 10 versions of a file", p.size)
	}
	for range 3 {
		load(fstest.MapFS{"b.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: shop}\n")}})
	}
	if len(p.files) > 0 || p.size != 0 || p.texts != 0 {
		t.Errorf("%d files, %d and %d bytes are kept of files that are gone", len(p.files), p.size, p.texts)
	}
	p.size, p.texts = maxValues-100, maxTexts
	if text := p.Text("c.yaml", file("short").Data); !bytes.Contains(text, []byte("short")) || p.last("c.yaml").Text != nil || p.texts != maxTexts {
		t.Error("a text beyond the limit is kept, or not decrypted")
	}
	if text := p.Text("c.yaml", file("short").Data); !bytes.Contains(text, []byte("ENC[")) && !bytes.Contains(text, []byte("short")) {
		t.Errorf("read again it is %s", text)
	}
	if text := p.Text("d.yaml", file(strings.Repeat("long", 100)).Data); bytes.Contains(text, []byte("longlong")) || !strings.Contains(p.last("d.yaml").err.Error(), "more than 32 MiB together") {
		t.Errorf("values beyond the limit are decrypted: %v", p.last("d.yaml").err)
	}
}

// Very many values that begin alike are looked for in bounded time. What is left then counts as secret.
func TestManyEncryptedValuesAreFoundInTime(t *testing.T) {
	values := make([]string, 5000)
	for i := range values {
		values[i] = strings.Repeat("a", 20) + fmt.Sprint(i)
	}
	s := secretsOf(values)
	if text := strings.Repeat("a", 500); !s.in("x"+values[4999]+"y") || s.in("harmless") || s.in(text) {
		t.Error("a value is not found, or one that is none")
	}
	for range 100 {
		_ = s.in(strings.Repeat("a", 500))
	}
	if !s.in("harmless") || *s.tries < -200 {
		t.Errorf("%d comparisons are left", *s.tries)
	}
	r := build.NewRedactor(values)
	if got := r.Redact("is " + values[7] + "!"); got != "is ***!" {
		t.Error(got)
	}
	if got := r.Redact(strings.Repeat("a", 500)); strings.Contains(got, "aaaa") {
		t.Error(got)
	}
}
