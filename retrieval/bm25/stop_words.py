"""Function words of languages: determiners, pronouns, prepositions, conjunctions, auxiliaries."""

from __future__ import annotations

from qabench.errors import unknown_name

LISTS = {
    "danish": """
        en et den det de der denne dette disse jeg mig min mit mine du dig din dit dine han ham hans hun hende hendes
        vi os vores i jer jeres dem deres sig sin sit sine man hvem hvad hvilken hvilket hvilke som
        af på ved fra til med uden om over under mellem gennem efter før mod hos for ad
        og men eller så hvis end at fordi mens da når ikke er var være været bliver blev har havde gør gjorde vil ville
        skal skulle kan kunne må måtte her hvor hvordan hvorfor
    """,
    "dutch": """
        een de het dit dat deze die elke ieder sommige geen ik mij me mijn wij we ons onze jij je jou jouw u uw hij hem
        zijn haar zij ze hun hen zich wie wat welke van in op bij aan voor naar met zonder over onder tussen door na
        tot uit om te en maar of dus als dan omdat terwijl hoewel niet is was waren ben bent geweest wordt werd worden
        heeft hebben had hadden doet doen deed zal zullen zou zouden kan kunnen kon moet moeten mag er hier daar waar
        wanneer waarom hoe
    """,
    "english": """
        a an the this that these those each every some any no
        i me my mine we us our ours you your yours he him his she her hers it its they them their theirs
        who whom whose which what
        of in on at by for from to with without into onto upon over under about between among through during
        before after and or but nor so if than then because while as though although
        am is are was were be been being do does did have has had will would shall should can could may might must not
        there here when where why how
    """,
    "finnish": """
        minä minun minua minut sinä sinun sinua hän hänen häntä hänet me meidän meitä te teidän teitä he heidän heitä
        se sen sitä ne niiden niitä tämä tämän tätä nämä näiden näitä tuo tuon tuota nuo kuka kenen ketä mikä minkä mitä
        joka jonka jota jotka ja tai sekä mutta vaan että jos kun kuin koska vaikka ei en et emme ette eivät ole olen
        olet on olemme olette ovat oli olivat ollut olla myös niin sitten siellä täällä missä milloin miksi miten
    """,
    "french": """
        un une le la les l du de des d ce cet cette ces chaque quelque quelques aucun aucune je j me m mon ma mes nous
        notre nos tu te t ton ta tes vous votre vos il elle on lui son sa ses ils elles leur leurs se s eux qui que qu
        quoi quel quelle quels quelles dont en dans sur sous par pour avec sans vers chez entre à au aux pendant avant
        après et ou mais ni donc or car si comme lorsque puisque ne n pas est sont était étaient être été suis es sommes
        êtes a ai as avons avez ont avait avaient eu sera seront serait fait peut peuvent doit y ici là où quand
        pourquoi comment c
    """,
    "german": """
        ein eine einer eines einem einen der die das des dem den dieser diese dieses diesem diesen jeder jede jedes kein
        keine keiner keines ich mich mir mein meine wir uns unser unsere du dich dir dein deine ihr euch euer eure er
        ihn ihm sein seine sie ihnen ihre ihren ihrem ihrer es sich man wer wen wem wessen was welcher welche welches
        von in im an am auf bei beim für aus zu zum zur mit ohne über unter zwischen durch während vor nach um bis gegen
        seit und oder aber denn weil wenn als wie dass daß ob obwohl so nicht bin bist ist sind seid war waren gewesen
        wird werden wurde wurden worden hat haben hatte hatten tut kann können konnte muss müssen soll sollte will
        wollte darf mag da hier wo wann warum
    """,
    "hindi": """
        यह ये वह वे इस इन उस उन इसे उसे मैं मुझे मेरा मेरी मेरे हम हमें हमारा हमारी हमारे तुम तुम्हारा आप आपका आपकी आपके अपना अपनी
        अपने कौन क्या किस किसी कोई कुछ जो जिस जिन का की के को में से पर ने तक लिए साथ द्वारा और या लेकिन परंतु अगर यदि तो कि
        क्योंकि जब तब भी ही न नहीं है हैं हूँ हो था थी थे होता होती होते रहा रही रहे गया गई गए कर करना किया सकता सकती सकते
        यहाँ वहाँ कहाँ कब क्यों कैसे
    """,
    "italian": """
        un uno una il lo la i gli le l questo questa questi queste quello quella quelli quelle ogni alcuni alcune nessun
        nessuno io me mi mio mia miei mie noi ci nostro nostra tu te ti tuo tua voi vi vostro vostra lui lei gli suo sua
        suoi sue essi loro si chi che cui cosa quale quali di del dello della dei degli delle in nel nello nella nei
        negli nelle su sul sullo sulla sui sulle a al allo alla ai agli alle da dal dallo dalla dai dagli dalle per con
        senza tra fra durante prima dopo e ed o ma né se come perché mentre quando non è sono era erano essere stato
        stata sia ha ho hai hanno aveva avevano fa può possono deve qui là dove
    """,
    "norwegian": """
        en ei et den det de denne dette disse jeg meg min mi mitt mine du deg din di ditt dine han ham hans hun henne
        hennes vi oss vår vårt våre dere deres dem seg sin si sitt sine man hvem hva hvilken hvilket hvilke som
        av på ved fra til med uten om over under mellom gjennom etter før mot hos for
        og men eller så hvis enn at fordi mens da når ikke er var være vært blir ble har hadde gjør gjorde vil ville
        skal skulle kan kunne må måtte her der hvor hvordan hvorfor
    """,
    "portuguese": """
        um uma uns umas o a os as este esta estes estas esse essa esses essas aquele aquela aqueles aquelas cada algum
        alguma nenhum nenhuma eu me mim meu minha meus minhas nós nos nosso nossa tu te teu tua você vocês vós ele ela
        eles elas lhe lhes seu sua seus suas se quem que qual quais de do da dos das em no na nos nas num numa por pelo
        pela pelos pelas para com sem sobre sob entre até durante antes após a ao aos à às e ou mas nem se como porque
        enquanto quando não é são era eram ser sido foi foram está estão tem têm tinha ter há faz pode podem deve aqui
        ali onde
    """,
    "russian": """
        я меня мне мной мы нас нам нами ты тебя тебе тобой вы вас вам вами он его него ему нему им ним она её ее неё нее
        ей ней оно они их них ими ними себя себе мой моя моё мои наш наша наше наши твой ваш свой своя своё свои этот
        эта это эти тот та то те такой каждый кто кого кому что чего чему который которая которое которые какой
        в во на к ко с со у о об от до из за под над при про для без через между по и а но или ни не если чтобы как
        потому когда пока хотя ли же бы был была было были быть есть будет будут может можно здесь там где почему
    """,
    "spanish": """
        un una unos unas el la los las lo este esta estos estas ese esa esos esas aquel aquella cada algún alguno alguna
        algunos algunas ningún ninguno ninguna yo me mí mi mis nosotros nos nuestro nuestra tú te ti tu tus vosotros os
        vuestro usted ustedes él ella ellos ellas le les se su sus quien quién quienes que qué cual cuál cuales de del
        en por para con sin sobre bajo entre hasta hacia desde durante antes después a al y e o u pero ni si como porque
        mientras cuando cuándo no es son era eran ser sido fue fueron está están ha he han había haber hay hace puede
        pueden debe aquí allí donde dónde cómo
    """,
    "swedish": """
        en ett den det de denna detta dessa jag mig min mitt mina du dig din ditt dina han honom hans hon henne hennes
        vi oss vår vårt våra ni er ert era dem deras sig sin sitt sina man vem vad vilken vilket vilka som
        av på vid från till med utan om över under mellan genom efter före mot hos för åt
        och men eller så än att eftersom medan då när inte är var vara varit blir blev har hade gör gjorde vill ville
        ska skulle kan kunde må måste här där hur varför
    """,
}
LANGUAGES = tuple(LISTS)


def stop_words_of(language: str) -> list[str]:
    """Return the function words of a language. Raises InputError if there is no list."""
    if language not in LISTS:
        raise unknown_name("unknown stop words", language, LANGUAGES)
    return LISTS[language].split()
