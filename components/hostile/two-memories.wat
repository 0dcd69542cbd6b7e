;; Has two memories of 64 MiB each, in two core modules, so that either alone is within
;; what a request may have.
(component
    (import "wasi:http/types@0.2.0" (instance $types
        (export "incoming-request" (type (sub resource)))
        (export "response-outparam" (type (sub resource)))))
    (alias export $types "incoming-request" (type $request))
    (alias export $types "response-outparam" (type $response))
    (core module $other
        (memory 1)
        (func (export "grow") (result i32) (memory.grow (i32.const 1023))))
    (core instance $o (instantiate $other))
    (core module $m
        (import "other" "grow" (func $other (result i32)))
        (memory 1)
        (func (export "handle") (param i32 i32)
            ;; The first one is within the limit.
            (if (i32.eq (memory.grow (i32.const 960)) (i32.const -1)) (then (loop (br 0))))
            ;; With the second one it is not, which is said by -1.
            (if (i32.eq (call $other) (i32.const -1)) (then unreachable))))
    (core instance $i (instantiate $m (with "other" (instance $o))))
    (func $handle (param "request" (own $request)) (param "response-out" (own $response))
        (canon lift (core func $i "handle")))
    (instance $handler (export "handle" (func $handle)))
    (export "wasi:http/incoming-handler@0.2.0" (instance $handler)))
