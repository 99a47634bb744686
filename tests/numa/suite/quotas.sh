# Where corebound's process may be in cgroup v2: each line of output is one situation.
R=/sys/fs/cgroup
B=/bin/busybox
U="setpriv --reuid 1000 --regid 1000 --clear-groups"
TRY="python3.11 /files/quotas.py"
try() { $TRY "$1" "${2:-tried}" $3; }
in_group() { echo 0 > "$R/$1/cgroup.procs"; }
everything() { for c in $(cat $R/cgroup.controllers); do echo "${1}$c" > $R/cgroup.subtree_control; done; }

try root
everything +
try root-all
mkdir -p $R/leaf $R/api/0a1b $R/api/0a1c $R/api/x/y/z $R/pm/x $R/empty/child $R/th/t1 $R/lm
(in_group leaf; try leaf)
(in_group api/0a1b; try nested)
(in_group api/x/y/z; try nested-deep)
echo +memory > $R/pm/cgroup.subtree_control
(in_group pm/x; try nested-memory)
(in_group empty; try empty-child)
(in_group th; echo threaded > $R/th/t1/cgroup.type; in_group th/t1; try threaded)
echo 2000M > $R/lm/memory.max
(in_group lm; try own-limit)
(in_group api/0a1b; try killed killed)
(in_group api/0a1b; try together together $R/api/0a1c)

mkdir -p $R/busy/child $R/lb/child $R/bp/x
sleep 1000 & S=$!; echo $S > $R/busy/child/cgroup.procs
(in_group busy; try busy-child)
sleep 1000 & T=$!; echo $T > $R/lb/child/cgroup.procs; echo 2000M > $R/lb/memory.max
(in_group lb; try busy-child-limit)
sleep 1000 & V=$!; echo $V > $R/bp/cgroup.procs
(in_group bp/x; try busy-parent)
kill $S $T $V

mkdir -p $R/ns/1 $R/ns/2 $R/ns/3 $R/ns/4 $R/ns/5 $R/ns/6/in $R/ns/6b $R/ns/8 /tmp/m
echo +cpu > $R/ns/cgroup.subtree_control
(in_group ns/1; unshare -C -m sh -c "$B umount $R; $B mount -t cgroup2 cg $R; $TRY namespace tried")
(in_group ns/2; unshare -C -m sh -c "$TRY old-mount tried")
(in_group ns/3; unshare -C -m sh -c "$B umount $R; $B mount -t cgroup2 -o ro cg $R; $TRY read-only tried")
(in_group api/0a1b; unshare -C -m sh -c "$B umount $R; $B mount -t cgroup2 cg $R; $TRY namespace-without tried")
(in_group ns/5; unshare -m sh -c "$B mount --bind $R/ns/5 /tmp/m; $B umount -l $R; $B mount --bind /tmp/m $R; $TRY own-mount tried")
(in_group ns/6/in; unshare -C -m sh -c "$B umount $R; echo \$\$ > /proc/1/root$R/ns/6b/cgroup.procs; $B mount -t cgroup2 cg $R; $TRY out-of-tree tried")
(unshare -m sh -c "$B umount $R; $TRY no-mount tried")
echo "50000 100000" > $R/ns/8/cpu.max
(in_group ns/8; unshare -C -m sh -c "$TRY old-mount-quota tried")

mkdir -p $R/dg $R/dg2/s $R/dg3 $R/dg5/in
chown -R 1000:1000 $R/dg $R/dg2; chown root $R/dg2/cpu.max
echo +cpu > $R/dg3/cgroup.subtree_control; mkdir $R/dg3/s; chown -R 1000:1000 $R/dg3 $R/dg5
(in_group dg; $U $TRY delegated tried)
(in_group dg2/s; $U $TRY delegated-nested tried)
(in_group dg3/s; $U $TRY delegated-with tried)
($U $TRY user-root tried)
(in_group leaf; $U $TRY user-leaf tried)
(in_group dg5/in; $U unshare -U -r -C -m sh -c "$TRY rootless tried")

# As it was before.
find $R -mindepth 1 -depth -type d -exec rmdir {} +
everything -
