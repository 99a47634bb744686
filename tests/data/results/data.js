window.BENCHMARK_DATA = {
 "lastUpdate": 1767323045000,
 "repoUrl": "https://example.org/x",
 "entries": {
  "Rust": [
   {
    "commit": {
     "author": {
      "email": "a@example.org",
      "name": "A",
      "username": "a"
     },
     "committer": {
      "email": "a@example.org",
      "name": "A",
      "username": "a"
     },
     "distinct": true,
     "id": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
     "message": "Fuse\n\nlong text",
     "timestamp": "2026-01-02T03:04:05+01:00",
     "tree_id": "cccccccccccccccccccccccccccccccccccccccc",
     "url": "https://example.org/x/commit/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    },
    "date": 1767319445000,
    "tool": "cargo",
    "benches": [
     {
      "name": "sum",
      "value": 1500,
      "range": "\u00b1 20",
      "unit": "ns/iter"
     }
    ]
   },
   {
    "commit": {
     "author": {
      "email": "a@example.org",
      "name": "A",
      "username": "a"
     },
     "committer": {
      "email": "a@example.org",
      "name": "A",
      "username": "a"
     },
     "distinct": true,
     "id": "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
     "message": "Fuse",
     "timestamp": "2026-01-02T03:04:05+01:00",
     "tree_id": "cccccccccccccccccccccccccccccccccccccccc",
     "url": "https://example.org/x/commit/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
    },
    "date": 1767405845000,
    "tool": "cargo",
    "benches": [
     {
      "name": "sum",
      "value": 1600,
      "range": "\u00b1 20",
      "unit": "ns/iter"
     }
    ]
   },
   {
    "commit": {
     "author": {
      "email": "a@example.org",
      "name": "A",
      "username": "a"
     },
     "committer": {
      "email": "a@example.org",
      "name": "A",
      "username": "a"
     },
     "distinct": true,
     "id": "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
     "message": "Fuse",
     "timestamp": "2026-01-02T03:04:05+01:00",
     "tree_id": "cccccccccccccccccccccccccccccccccccccccc",
     "url": "https://example.org/x/commit/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
    },
    "date": 1767409445000,
    "tool": "cargo",
    "benches": [
     {
      "name": "sum",
      "value": 1700,
      "range": "\u00b1 20",
      "unit": "ns/iter"
     }
    ]
   }
  ],
  "Python": [
   {
    "commit": {
     "author": {
      "email": "a@example.org",
      "name": "A",
      "username": "a"
     },
     "committer": {
      "email": "a@example.org",
      "name": "A",
      "username": "a"
     },
     "distinct": true,
     "id": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
     "message": "Fuse",
     "timestamp": "2026-01-02T03:04:05+01:00",
     "tree_id": "cccccccccccccccccccccccccccccccccccccccc",
     "url": "https://example.org/x/commit/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    },
    "date": 1767319445000,
    "tool": "pytest",
    "benches": [
     {
      "name": "t.py::test_sum",
      "value": 1200.5,
      "range": "stddev: 0.1",
      "unit": "iter/sec",
      "extra": "mean: 1 msec"
     }
    ]
   }
  ],
  "Own": [
   {
    "commit": {
     "author": {
      "email": "a@example.org",
      "name": "A",
      "username": "a"
     },
     "committer": {
      "email": "a@example.org",
      "name": "A",
      "username": "a"
     },
     "distinct": true,
     "id": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
     "message": "Fuse",
     "timestamp": "2026-01-02T03:04:05+01:00",
     "tree_id": "cccccccccccccccccccccccccccccccccccccccc",
     "url": "https://example.org/x/commit/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    },
    "date": 1767319445000,
    "tool": "customSmallerIsBetter",
    "benches": [
     {
      "name": "wait",
      "value": 2.5,
      "unit": "ms"
     },
     {
      "name": "size",
      "value": 10,
      "unit": "kB"
     }
    ]
   }
  ]
 }
}