"""20,000 devices that report in turn, 200 rows each: questions about one of them and about a hundred, from memory and from parts.

Usage, in the root of a checkout: python3 PATH/fleet.py PROGRAM... (one round for each program, two seconds a question)
"""
import sys, os, json, time, subprocess, pathlib, random, shutil, importlib.machinery, importlib.util
sys.path.insert(0,'scenarios')
l=importlib.machinery.SourceFileLoader('rp','scenarios/reads-parity'); rp=importlib.util.module_from_spec(importlib.util.spec_from_loader('rp',l)); l.exec_module(rp)
import parity, servers
N,STEPS=20_000,200
W=pathlib.Path('bench-runs/fleet'); W.mkdir(parents=True,exist_ok=True)
lp=W/'w.lp'
end=int(time.time())//3600*3600
if not lp.exists():
    random.seed(1)
    with open(lp,'w') as f:
        for s in range(STEPS):
            t=end-36*STEPS+36*s
            f.write(''.join(f'telemetry,device=bus-{d} x={random.randint(0,9999)/100} {t}\n' for d in range(N)))
else:
    end=int(lp.open().readline().split()[-1])+36*STEPS
def serve(binary, data):
    env={**os.environ,"TACHO_HTTP_LISTEN":"127.0.0.1:0","TACHO_MQTT_LISTEN":"127.0.0.1:0"}
    p=subprocess.Popen([binary,"serve","--data",data],env=env,stdout=subprocess.PIPE,stderr=subprocess.DEVNULL,text=True)
    for line in p.stdout:
        if line.startswith("listening http"): port=int(line.rsplit(":",1)[1])
        if line.strip()=="ready": break
    pw=(pathlib.Path(data)/"admin-password").read_text().strip()
    return p,port,pw
import threading
def ask(binary, data, label):
    p,port,pw=serve(binary,data)
    threading.Thread(target=p.stdout.read,daemon=True).start()
    c=rp.logged_in(port,pw)
    if label=='memory':
        c.json("POST","/api/tacho/devices",{"count":10000,"prefix":"bus-","tokenPrefix":"tok-"})
        subprocess.run([binary,"import","--data",data,"--format","lines","--precision","s",str(lp)],check=True,stdout=subprocess.DEVNULL,stderr=subprocess.DEVNULL)
    page=c.json("GET","/api/tenant/devices?pageSize=100&page=0&textSearch=bus-77")
    ids={d["name"]:d["id"]["id"] for d in page["data"]}
    some=[ids[n] for n in sorted(ids)][:100]
    name=sorted(ids)[0]
    R=rp.Request
    S=lambda q: R("POST","/api/sql",json.dumps({"query":q,"format":"csv"}))
    hour=f"startTs={(end-3600)*1000}&endTs={end*1000}"; all_=f"startTs={(end-36*STEPS)*1000}&endTs={end*1000}"
    between=lambda s: f"ts >= to_timestamp({end-s}) AND ts < to_timestamp({end})"
    for what,req in [
        ("direct one, 1 h",R("GET",f"/api/plugins/telemetry/DEVICE/{ids[name]}/values/timeseries?keys=x&{hour}&limit=1000")),
        ("direct one, means of all",R("GET",f"/api/plugins/telemetry/DEVICE/{ids[name]}/values/timeseries?keys=x&{all_}&agg=AVG&interval=300000")),
        ("direct 100, means of all",R("POST",f"/api/tacho/values?keys=x&{all_}&agg=AVG&interval=300000",json.dumps(some))),
        ("SQL one, 1 h",S(f"SELECT ts, x FROM telemetry WHERE device = '{name}' AND {between(3600)} ORDER BY ts")),
        ("SQL one, means of all",S(f"SELECT time_bucket(INTERVAL '5 minutes', ts) AS t, avg(x) FROM telemetry WHERE device = '{name}' GROUP BY t ORDER BY t")),
    ]:
        r=rp.measure(2,c,req,p.pid)
        print(f"{label:8} {what:28} p50 {r['p50_ms']:.3f} ms  cpu {r['cpu_us']:.0f} us",flush=True)
    p.terminate(); p.wait()
for binary in sys.argv[1:]:
    print(binary)
    data=W/'data'; shutil.rmtree(data,ignore_errors=True)
    ask(binary,str(data),'memory'); ask(binary,str(data),'parts')
