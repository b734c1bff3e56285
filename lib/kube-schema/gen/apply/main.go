// Prints what the field manager of kube-apiserver makes of sequences of applies and updates: sim/src/managed/golden.jsonl.
// A line is a sequence; an object is there as it was stored, with managedFields but without their times.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"sort"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

type object = map[string]any

// The field manager converts nothing and fills in nothing here.
type plain struct{}

func (plain) Convert(in, out, context any) error { return errors.New("not needed") }
func (plain) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}
func (plain) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}
func (plain) Default(runtime.Object) {}
func (plain) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	empty := &unstructured.Unstructured{}
	empty.SetGroupVersionKind(kind)
	return empty, nil
}

type subject struct {
	kind    schema.GroupVersionKind
	schema  object
	head    string
	parts   []string
	patches []string
}

var subjects = []subject{
	{
		kind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		head: `{"spec":{"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"main","image":"nginx:1"}]}}}}`,
		parts: []string{
			`{"spec":{"replicas":2}}`,
			`{"spec":{"replicas":3,"minReadySeconds":5}}`,
			`{"metadata":{"labels":{"tier":"front","a.b/c":"d"}}}`,
			`{"metadata":{"annotations":{"note":"x"},"finalizers":["example.com/a"]}}`,
			`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"u1"}]}}`,
			`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"nginx:2","env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]}]}}}}`,
			`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"nginx:1","ports":[{"containerPort":80},{"containerPort":53,"protocol":"UDP"}]}]}}}}`,
			`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"nginx:1","ports":[{"containerPort":53,"protocol":"UDP"},{"containerPort":80,"protocol":"TCP","name":"web"}]}]}}}}`,
			`{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"side:1","args":["x","y"]},{"name":"main","image":"nginx:1"}]}}}}`,
			`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"nginx:1"},{"name":"side","image":"side:2","args":["z"]},{"name":"third","image":"t"}]}}}}`,
			`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"nginx:1","resources":{"limits":{"cpu":"1"}},"volumeMounts":[]}]}}}}`,
			`{"spec":{"strategy":{"rollingUpdate":{"maxSurge":1}}}}`,
			`{"spec":{"template":{"spec":{"nodeSelector":{"disk":"ssd"},"tolerations":[{"key":"a","operator":"Exists"}],"imagePullSecrets":[{"name":"s"}]}}}}`,
			`{"spec":{"template":{"spec":{"topologySpreadConstraints":[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule"}],"hostAliases":[{"ip":"1.1.1.1","hostnames":["a"]}]}}}}`,
			`{"spec":{"template":{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Exists"}]}]}}},"securityContext":{}}}}}`,
		},
		patches: []string{
			`{"spec":{"replicas":5}}`,
			`{"metadata":{"labels":{"tier":"back","more":"1"}}}`,
			`{"metadata":{"labels":null}}`,
			`{"spec":{"paused":true,"minReadySeconds":null}}`,
			`{"spec":{"template":{"spec":{"containers":[{"name":"main","image":"nginx:3"}]}}}}`,
			`{"status":{"replicas":1,"conditions":[{"type":"Available","status":"True"}]}}`,
			`{}`,
			`{"metadata":{"managedFields":[{}]}}`,
		},
	},
	{
		kind: schema.GroupVersionKind{Version: "v1", Kind: "Service"},
		head: `{"spec":{"selector":{"app":"web"},"ports":[{"port":80}]}}`,
		parts: []string{
			`{"spec":{"selector":{"app":"x","tier":"y"}}}`,
			`{"spec":{"ports":[{"port":80,"name":"web"},{"port":53,"protocol":"UDP","name":"dns"}]}}`,
			`{"spec":{"ports":[{"port":81,"targetPort":"http","protocol":"TCP"}]}}`,
			`{"metadata":{"labels":{"tier":"front"}}}`,
			`{"spec":{"sessionAffinity":"ClientIP","externalIPs":["1.1.1.1"]}}`,
		},
		patches: []string{
			`{"spec":{"selector":{"app":"z"}}}`,
			`{"spec":{"ports":[{"port":90}]}}`,
			`{"metadata":{"annotations":{"note":"y"}}}`,
			`{"metadata":{"managedFields":[{}]}}`,
		},
	},
	{
		kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"},
		head: `{"data":{"k":"v"}}`,
		parts: []string{
			`{"data":{"k":"w"}}`,
			`{"data":{"l":"1","m":"2"}}`,
			`{"data":{}}`,
			`{"metadata":{"labels":{"tier":"front"}}}`,
			`{"immutable":false}`,
		},
		patches: []string{
			`{"data":{"k":"z","n":"3"}}`,
			`{"data":null}`,
			`{"data":{"l":null}}`,
			`{"metadata":{"managedFields":[{}]}}`,
		},
	},
	{
		kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Box"},
		schema: parse(`{"type":"object","properties":{
			"apiVersion":{"type":"string"},"kind":{"type":"string"},"metadata":{"type":"object","properties":{
				"name":{"type":"string"},"uid":{"type":"string"},"managedFields":{"type":"array","items":{"type":"object"}},
				"labels":{"type":"object","additionalProperties":{"type":"string"}},
				"annotations":{"type":"object","additionalProperties":{"type":"string"}}}},
			"spec":{"type":"object","properties":{
				"size":{"type":"integer"},
				"list":{"type":"array","items":{"type":"string"}},
				"lid":{"type":"object","x-kubernetes-map-type":"atomic","properties":{"kind":{"type":"string"},"weight":{"type":"integer"}}},
				"set":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
				"parts":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["name","port"],
					"items":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"port":{"type":"integer","default":80},"count":{"type":"integer"}}}},
				"limits":{"type":"object","additionalProperties":{"type":"string"}},
				"bare":{"type":"object"},
				"free":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"known":{"type":"object","properties":{"a":{"type":"string"}}}}}}},
			"status":{"type":"object","properties":{"count":{"type":"integer"}}}}}`),
		head: `{"spec":{"size":1}}`,
		parts: []string{
			`{"spec":{"parts":[{"name":"a","count":2},{"name":"b","port":1}]}}`,
			`{"spec":{"parts":[{"name":"c"},{"name":"a","port":80}],"size":2}}`,
			`{"spec":{"set":["x","y"]}}`,
			`{"spec":{"set":["z","x"],"list":["1","2"]}}`,
			`{"spec":{"lid":{"kind":"flat"},"list":["1"]}}`,
			`{"spec":{"lid":{"kind":"round","weight":1}}}`,
			`{"spec":{"limits":{"a":"1"},"free":{"any":{"thing":[1,{"x":2}],"more":1}}}}`,
			`{"spec":{"limits":{"b":"1"},"free":{"any":{"other":{}},"list":[],"known":{"a":"1","b":2}}}}`,
			`{"spec":{"bare":{"a":{"b":[1]}}}}`,
			`{"spec":{"bare":{"a":{"c":2}},"set":[]}}`,
			`{"metadata":{"labels":{"tier":"front"}},"status":{"count":1}}`,
		},
		patches: []string{
			`{"spec":{"size":7}}`,
			`{"spec":{"set":["q"],"lid":null}}`,
			`{"spec":{"parts":[{"name":"a","port":80,"count":9}]}}`,
			`{"spec":{"free":{"any":{"thing":5}}}}`,
			`{"spec":{"limits":null,"bare":{"a":null}}}`,
			`{"metadata":{"labels":{"more":"1"}}}`,
			`{"metadata":{"managedFields":[{}]}}`,
		},
	},
}

func parse(text string) object {
	var out object
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		panic(err)
	}
	return normal(out).(object)
}

// Whole numbers are integers, as in what clients send.
func normal(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, one := range v {
			v[name] = normal(one)
		}
	case []any:
		for i, one := range v {
			v[i] = normal(one)
		}
	case float64:
		return int64(v)
	}
	return value
}

func merge(into object, patch object) {
	for name, value := range patch {
		below, is := value.(map[string]any)
		there, has := into[name].(map[string]any)
		switch {
		case value == nil:
			delete(into, name)
		case is && has:
			merge(there, below)
		case is:
			fresh := object{}
			merge(fresh, below)
			into[name] = fresh
		default:
			into[name] = value
		}
	}
}

func (s subject) body(dice *rand.Rand, parts int) object {
	out := parse(s.head)
	out["apiVersion"], out["kind"] = s.kind.GroupVersion().String(), s.kind.Kind
	merge(out, object{"metadata": object{"name": "a"}})
	for i := 0; i < parts; i++ {
		merge(out, parse(s.parts[dice.Intn(len(s.parts))]))
	}
	return out
}

// An object without the times of its managed fields.
func untimed(live *unstructured.Unstructured) object {
	out := live.DeepCopy().Object
	entries, _, _ := unstructured.NestedSlice(out, "metadata", "managedFields")
	for _, entry := range entries {
		delete(entry.(object), "time")
	}
	sort.SliceStable(entries, func(i, j int) bool { return key(entries[i]) < key(entries[j]) })
	if len(entries) > 0 {
		_ = unstructured.SetNestedSlice(out, entries, "metadata", "managedFields")
	}
	return out
}

func key(entry any) string {
	e := entry.(object)
	return fmt.Sprint(e["operation"], "|", e["manager"], "|", e["apiVersion"], "|", e["subresource"])
}

func sequence(seed int64) object {
	dice := rand.New(rand.NewSource(seed))
	s := subjects[int(seed)%len(subjects)]
	types := applyconfigurations.NewTypeConverter(scheme.Scheme)
	if s.schema != nil {
		text, _ := json.Marshal(s.schema)
		var of spec.Schema
		if err := json.Unmarshal(text, &of); err != nil {
			panic(err)
		}
		of.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{"group": s.kind.Group, "version": s.kind.Version, "kind": s.kind.Kind}})
		converter, err := managedfields.NewTypeConverter(map[string]*spec.Schema{"box": &of}, false)
		if err != nil {
			panic(err)
		}
		types = converter
	}
	manager := func(subresource string) *managedfields.FieldManager {
		out, err := managedfields.NewDefaultFieldManager(types, plain{}, plain{}, plain{}, s.kind, s.kind.GroupVersion(), subresource, nil)
		if err != nil {
			panic(err)
		}
		return out
	}
	empty, _ := plain{}.New(s.kind)
	live := empty.(*unstructured.Unstructured)
	steps := []any{}
	for i := 0; i < 10; i++ {
		step := object{}
		var result runtime.Object
		var err error
		roll := dice.Intn(10)
		if i == 0 {
			roll = []int{0, 0, 7, 9}[dice.Intn(4)]
		}
		switch {
		case roll < 6:
			name := []string{"first", "second", "kubectl"}[dice.Intn(3)]
			force := roll == 5
			body := s.body(dice, dice.Intn(3))
			if dice.Intn(4) == 0 {
				// a part of it only
				body = parse(s.parts[dice.Intn(len(s.parts))])
				body["apiVersion"], body["kind"] = s.kind.GroupVersion().String(), s.kind.Kind
				merge(body, object{"metadata": object{"name": "a"}})
			}
			step["apply"], step["manager"], step["force"] = body, name, force
			applied := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(body)}
			result, err = manager("").Apply(live.DeepCopy(), applied, name, force)
		default:
			name := fmt.Sprintf("editor-%d", dice.Intn(13))
			var patch object
			switch {
			case i == 0 && roll == 9:
				// kubectl's own apply
				patch = s.body(dice, 1)
				text, _ := json.Marshal(patch)
				merge(patch, object{"metadata": object{"annotations": object{"kubectl.kubernetes.io/last-applied-configuration": string(text) + "\n"}}})
				name = "kubectl-client-side-apply"
			case i == 0:
				patch = s.body(dice, 2)
			default:
				patch = parse(s.patches[dice.Intn(len(s.patches))])
			}
			subresource := ""
			if _, is := patch["status"]; is && i > 0 {
				subresource = "status"
			}
			step["update"], step["manager"], step["subresource"] = patch, name, subresource
			changed := live.DeepCopy()
			merge(changed.Object, runtime.DeepCopyJSON(patch))
			result, err = manager(subresource).Update(live.DeepCopy(), changed, name)
		}
		var status *apierrors.StatusError
		switch {
		case errors.As(err, &status):
			causes := []string{}
			for _, cause := range status.ErrStatus.Details.Causes {
				causes = append(causes, cause.Message+": "+cause.Field)
			}
			sort.Strings(causes)
			step["conflicts"] = causes
			if len(causes) == 1 {
				step["message"] = status.ErrStatus.Message
			}
		case err != nil:
			panic(fmt.Sprint(seed, step, err))
		default:
			live = result.(*unstructured.Unstructured)
			if live.GetUID() == "" {
				live.SetUID("u")
			}
			step["live"] = untimed(live)
		}
		steps = append(steps, step)
	}
	out := object{"apiVersion": s.kind.GroupVersion().String(), "kind": s.kind.Kind, "steps": steps}
	if s.schema != nil {
		out["schema"] = s.schema
	}
	return out
}

func main() {
	for seed := int64(0); seed < 80; seed++ {
		text, err := json.Marshal(sequence(seed))
		if err != nil {
			panic(err)
		}
		fmt.Println(string(text))
	}
}
